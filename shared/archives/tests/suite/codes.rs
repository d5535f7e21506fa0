use fonds_archives::Problem;
use fonds_domain::ErrorCode;

#[test]
fn every_reason_is_in_the_table_that_explains_codes_to_people() {
    for problem in Problem::ALL {
        assert_eq!(ErrorCode::named(problem.code()).as_str(), problem.code());
    }
}
