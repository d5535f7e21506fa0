// Everything wanted from the document, in one go. Runs in a world of its own: the page cannot have
// replaced the functions used here. Limits keep a hostile page from filling memory.
((want) => {
  const out = { url: location.href, title: document.title };
  const root = document.documentElement;
  const roots = [];
  if (want.dom || want.outlinks) {
    const walk = (node) => {
      const tree = document.createTreeWalker(node, NodeFilter.SHOW_ELEMENT);
      for (let el = tree.nextNode(); el && roots.length < 5000; el = tree.nextNode()) {
        if (el.shadowRoot) { roots.push(el.shadowRoot); walk(el.shadowRoot); }
      }
    };
    walk(document);
  }
  if (want.dom && root) {
    let html;
    if (roots.length && root.getHTML) {
      // Open shadow roots are written as templates, else their content would be missing.
      const shell = root.cloneNode(false).outerHTML;
      const end = shell.lastIndexOf('</');
      const inner = root.getHTML({ serializableShadowRoots: true, shadowRoots: roots });
      html = end < 0 ? root.outerHTML : shell.slice(0, end) + inner + shell.slice(end);
    } else {
      html = root.outerHTML;
    }
    if (document.doctype) html = new XMLSerializer().serializeToString(document.doctype) + '\n' + html;
    if (html.length > want.maxHtml) out.htmlLength = html.length; else out.html = html;
  }
  if (want.outlinks) {
    out.links = [];
    for (const scope of [document, ...roots]) {
      for (const a of scope.querySelectorAll('a[href], area[href]')) {
        if (out.links.length >= want.maxLinks) { out.linksTruncated = true; break; }
        const raw = a.getAttribute('href') ?? a.getAttributeNS('http://www.w3.org/1999/xlink', 'href');
        let url;
        try { url = new URL(raw, a.baseURI).href; } catch { continue; }
        if (url.length > 65535) continue;
        out.links.push({
          url,
          text: (a.textContent || a.getAttribute('alt') || '').replace(/\s+/g, ' ').trim().slice(0, 300),
          rel: (a.getAttribute('rel') || '').slice(0, 100),
        });
      }
    }
  }
  if (want.seo) {
    const all = (css, max) => [...document.querySelectorAll(css)].slice(0, max);
    const cut = (s, n = 10000) => (s == null ? undefined : String(s).slice(0, n));
    const attrs = (el, names) => {
      const o = {};
      for (const n of names) if (el.hasAttribute(n)) o[n] = cut(el.getAttribute(n));
      return o;
    };
    out.seo = {
      title: cut(document.title),
      lang: cut(root && root.getAttribute('lang')) ?? null,
      charset: document.characterSet,
      compat_mode: document.compatMode,
      content_type: document.contentType,
      last_modified: document.lastModified,
      referrer_policy: cut(document.referrerPolicy),
      meta: all('meta', 500).map((m) => attrs(m, ['name', 'property', 'http-equiv', 'itemprop', 'charset', 'content'])),
      links: all('link[rel]', 500).map((l) => ({
        ...attrs(l, ['rel', 'hreflang', 'type', 'sizes', 'media', 'title']), href: cut(l.href),
      })),
      json_ld: all('script[type="application/ld+json" i]', 50).map((s) => cut(s.textContent, 200000)),
      h1: all('h1', 50).map((h) => cut(h.textContent.replace(/\s+/g, ' ').trim(), 500)),
    };
  }
  const scroller = document.scrollingElement || root;
  out.width = scroller ? scroller.scrollWidth : 0;
  out.height = scroller ? scroller.scrollHeight : 0;
  return out;
})
