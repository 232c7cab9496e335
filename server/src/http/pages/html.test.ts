import assert from 'node:assert/strict'
import { test } from 'node:test'
import { html } from './html.ts'

test('every value is escaped, for text and for attributes in quotes', () => {
  const hostile = `"><script>alert('&')</script>`
  const { text } = html`<a title="${hostile}">${hostile}</a>`
  const escaped = '&quot;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;'
  assert.equal(text, `<a title="${escaped}">${escaped}</a>`)
})

test('a piece of HTML is inserted unescaped, a list is joined, and an absent value is empty', () => {
  const items = ['a', '<b>'].map((item) => html`<li>${item}</li>`)
  assert.equal(html`<ul>${items}</ul>${false}${undefined}${null}${0}`.text, '<ul><li>a</li><li>&lt;b&gt;</li></ul>0')
  assert.equal(html`${[html`<i>`, '<i>', [1, false]]}`.text, '<i>&lt;i&gt;1')
})
