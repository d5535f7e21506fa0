DROP TABLE capability, app_setting, idempotency, api_token, host, snapshot_text, payload, object_ref, object,
    archive_result_attempt, archive_result, snapshot, crawl_input, crawl, task_run, status_transition;
DROP FUNCTION refuse_illegal_transition();
DROP EXTENSION pg_trgm;
