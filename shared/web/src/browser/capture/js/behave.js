// What a reader would do first: put consent banners away, and scroll through so that late pictures
// load. Bounded by time and height; ends at the top.
(async (want) => {
  const out = { banners: 0, capped: false };
  if (want.closeBanners) {
    const known = want.selectors;
    const hide = [];
    for (const css of known) if (document.querySelector(css)) hide.push(css);
    // Others: fixed to the window and named after what they ask for.
    const named = ['cookie', 'consent', 'gdpr', 'ccpa', 'newsletter-modal', 'subscribe-modal']
      .map((w) => `[id*="${w}" i],[class*="${w}" i]`).join(',');
    let looked = 0;
    for (const el of document.querySelectorAll(named)) {
      if (++looked > 200) break;
      if (el === document.body || el === document.documentElement || (hide.length && el.closest(hide.join(',')))) continue;
      const style = getComputedStyle(el);
      if (style.position !== 'fixed' && style.position !== 'sticky') continue;
      if (el.id) hide.push('#' + CSS.escape(el.id));
      else if (el.classList.length) hide.push('.' + [...el.classList].map((c) => CSS.escape(c)).join('.'));
    }
    if (hide.length) {
      out.banners = hide.length;
      // A constructed sheet is no part of the document: the saved DOM stays as it was served.
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(`${hide.join(',')}{display:none!important}` +
        'html,body{overflow:auto!important;position:static!important}');
      document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    }
  }
  const el = document.scrollingElement || document.documentElement;
  if (want.scroll && el && el.scrollHeight > innerHeight) {
    const end = performance.now() + want.scrollMs;
    const to = (top) => scrollTo({ top, behavior: 'instant' });
    const from = scrollY;
    let y = 0;
    while (y + innerHeight < el.scrollHeight) {
      if (performance.now() > end || y > want.maxHeight) { out.capped = true; break; }
      y += innerHeight;
      to(y);
      await new Promise((done) => setTimeout(done, want.stepMs));
    }
    to(from);
  }
  return out;
})
