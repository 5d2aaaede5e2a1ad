/**
 * Plain HTML pages for people: without scripts, readable on a phone, English or Chinese. Styles are inline; nothing is
 * loaded.
 */
export type Language = 'en' | 'zh';

export interface Page {
  status: number;
  html: string;
}

/** Headers of every page: nothing runs, nothing is loaded, and an address with a token in it does not travel on. */
export const pageHeaders: Readonly<Record<string, string>> = {
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
};

const style = `
body{font:17px/1.5 system-ui,sans-serif;max-width:26em;margin:10vh auto;padding:0 1.2em;color:#222;background:#fff}
h1{font-size:1.4em}label{display:block;margin:1em 0}[role=alert]{color:#a00}a{color:#05c}
input,button{box-sizing:border-box;width:100%;font:inherit;padding:.6em;margin-top:.3em}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}[role=alert]{color:#f77}a{color:#7bf}}`;

/** A whole page. `title` and `body` are HTML: the caller escapes what is not its own. */
export function htmlPage(
  status: number,
  { language, title, body }: { language: Language; title: string; body: string[] },
): Page {
  const html = [
    `<!doctype html><html lang="${language}"><head><meta charset="utf-8">`,
    '<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="robots" content="noindex">',
    `<title>${title}</title><style>${style}</style></head><body><h1>${title}</h1>`,
    ...body,
    '</body></html>',
  ];
  return { status, html: html.join('\n') };
}

/** A text as it stands in HTML, in attributes too. */
export function escapeHtml(text: string): string {
  const entities: Record<string, string> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
    "'": '&#39;',
  };
  return text.replace(/[&<>"']/g, (char) => entities[char] ?? char);
}
