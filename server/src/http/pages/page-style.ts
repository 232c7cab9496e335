/** The stylesheet of all pages that the server renders, in light and dark, for narrow and wide screens. */
export const pageStyle = `
:root {
  --back: #f4f4f7; --card: #ffffff; --line: #dcdce4; --field: #8b8b9a; --text: #17171f; --soft: #595966;
  --accent: #4f46e5; --accent-over: #4338ca; --on-accent: #ffffff; --quiet: #f0f0f5;
  --bad-back: #fdecec; --bad-line: #f3b8b8; --bad: #a11616; --warn-back: #fff6e0; --warn-line: #ecd08a; --warn: #704a00;
  --shadow: 0 1px 2px rgb(20 20 40 / 6%), 0 12px 32px rgb(20 20 40 / 8%);
  color-scheme: light dark;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #101014; --card: #18181f; --line: #30303c; --field: #7d7d8f; --text: #f1f1f5; --soft: #a9a9b8;
    --accent: #818cf8; --accent-over: #a5adfb; --on-accent: #101024; --quiet: #22222c;
    --bad-back: #331618; --bad-line: #6e2a2e; --bad: #ffb4b4; --warn-back: #2e2510; --warn-line: #66521d; --warn: #f5d68a;
    --shadow: 0 1px 2px rgb(0 0 0 / 40%), 0 12px 32px rgb(0 0 0 / 40%);
  }
}
* { box-sizing: border-box; }
html { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; -webkit-text-size-adjust: 100%; }
body { margin: 0; min-height: 100vh; min-height: 100dvh; display: grid; place-items: center; padding: 24px 16px; background: var(--back); color: var(--text); }
main { width: 100%; max-width: 432px; background: var(--card); border: 1px solid var(--line); border-radius: 16px; padding: 36px; box-shadow: var(--shadow); overflow-wrap: anywhere; }
.brand { display: flex; align-items: center; gap: 10px; margin: 0 0 28px; font-weight: 650; letter-spacing: -0.01em; }
h1 { margin: 0 0 6px; font-size: 1.5rem; line-height: 1.25; letter-spacing: -0.02em; font-weight: 650; }
h2 { margin: 24px 0 8px; font-size: 0.875rem; font-weight: 600; }
p { margin: 0 0 12px; }
.lead { margin-bottom: 24px; color: var(--soft); }
.lead strong { color: var(--text); font-weight: 600; }
.field { margin-bottom: 18px; }
label { display: block; margin-bottom: 6px; font-size: 0.875rem; font-weight: 600; }
input, select { width: 100%; min-height: 44px; padding: 9px 12px; font: inherit; color: var(--text); background: var(--card); border: 1px solid var(--field); border-radius: 9px; }
input[aria-invalid="true"] { border-color: var(--bad); }
input[readonly] { color: var(--soft); background: var(--quiet); }
.hint, .fault { margin: 6px 0 0; font-size: 0.8125rem; color: var(--soft); }
.fault { color: var(--bad); font-weight: 500; }
button, .button { display: inline-flex; align-items: center; justify-content: center; min-height: 44px; padding: 9px 18px; font: inherit; font-weight: 600; color: var(--text); background: var(--quiet); border: 1px solid var(--line); border-radius: 9px; text-decoration: none; cursor: pointer; }
button:hover, .button:hover { border-color: var(--field); }
.primary { color: var(--on-accent); background: var(--accent); border-color: var(--accent); }
.primary:hover { background: var(--accent-over); border-color: var(--accent-over); }
.wide { width: 100%; }
.providers { display: grid; gap: 10px; }
.button { text-align: center; }
h1 + .providers { margin-top: 24px; }
.or { display: flex; align-items: center; gap: 12px; margin: 20px 0; font-size: 0.875rem; color: var(--soft); }
.or::before, .or::after { content: ""; flex: 1; border-top: 1px solid var(--line); }
.ways { margin: 0 0 20px; padding: 0; list-style: none; }
.ways li { display: flex; align-items: center; gap: 12px; padding: 12px 0; border-top: 1px solid var(--line); }
.ways li:first-child { border-top: 0; }
.ways div { flex: 1; min-width: 0; font-size: 0.875rem; line-height: 1.35; }
.ways .name { display: block; font-weight: 600; }
.ways .mail { display: block; color: var(--soft); }
.ways button { min-height: 36px; padding: 5px 12px; font-size: 0.8125rem; }
.actions { display: flex; gap: 12px; margin: 28px 0 0; }
.actions > * { flex: 1; }
a { color: var(--accent); text-underline-offset: 3px; }
a:hover { color: var(--accent-over); }
a.primary, a.primary:hover { color: var(--on-accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.foot { margin: 24px 0 0; padding-top: 20px; border-top: 1px solid var(--line); font-size: 0.875rem; color: var(--soft); }
.notice { margin: 0 0 20px; padding: 12px 14px; font-size: 0.875rem; border: 1px solid var(--line); border-radius: 10px; background: var(--quiet); }
.notice.bad { color: var(--bad); background: var(--bad-back); border-color: var(--bad-line); }
.notice.warn { color: var(--warn); background: var(--warn-back); border-color: var(--warn-line); }
.account { display: flex; align-items: center; gap: 12px; margin-bottom: 20px; padding: 10px 10px 10px 14px; border: 1px solid var(--line); border-radius: 10px; }
.account div { flex: 1; min-width: 0; font-size: 0.875rem; line-height: 1.35; }
.account .name { display: block; font-weight: 600; }
.account .mail { display: block; color: var(--soft); }
.account button { min-height: 36px; padding: 5px 12px; font-size: 0.8125rem; }
.scopes { margin: 0; padding: 0; list-style: none; }
.scopes li { display: flex; gap: 12px; padding: 9px 0; border-top: 1px solid var(--line); font-size: 0.9375rem; }
.scopes li:first-child { border-top: 0; }
.scopes svg { flex: none; margin-top: 3px; color: var(--accent); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 6px 16px; margin: 20px 0 0; padding-top: 18px; border-top: 1px solid var(--line); font-size: 0.875rem; }
dl.offer { margin: 0 0 24px; padding-bottom: 18px; border-bottom: 1px solid var(--line); }
dt { color: var(--soft); }
dd { margin: 0; font-weight: 500; }
code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 0.875em; }
@media (max-width: 480px) {
  body { place-items: start stretch; padding: 0; background: var(--card); }
  main { max-width: none; border: 0; border-radius: 0; padding: 28px 20px; box-shadow: none; }
}
@media (forced-colors: active) { main, button, .button { border: 1px solid; } }
`
