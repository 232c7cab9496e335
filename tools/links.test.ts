import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'

const root = join(import.meta.dirname, '..')
const pages = globSync(['*.md', '{bench,cli,deploy,docs,sdk}/**/*.md'], { cwd: root }).filter(
  (page) => !page.includes('node_modules'),
)

/** The anchor that GitHub gives a heading: lowercase, without marks, spaces as hyphens. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')
}

/** Relative links of a page, without those in code. */
function linksOf(page: string): string[] {
  const text = readFileSync(join(root, page), 'utf8')
    .replaceAll(/^```.*?^```/gms, '')
    .replaceAll(/`[^`\n]*`/g, 'code')
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link).filter((link) => !/^[a-z]+:/.test(link))
}

function leadsSomewhere(page: string, link: string): boolean {
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? join(root, page) : join(root, dirname(page), path)
  if (!existsSync(target)) return false
  if (anchor === undefined) return true
  const headings = readFileSync(target, 'utf8').matchAll(/^#{1,6} (.+)$/gm)
  return [...headings].some(([, heading = '']) => anchorOf(heading) === anchor)
}

test('every relative link in the documents leads to a file and a heading that exist', () => {
  const links = pages.flatMap((page) => linksOf(page).map((link) => ({ page, link })))
  assert.ok(links.length > 100, `only ${links.length} links were found`)
  assert.deepEqual(
    links.filter(({ page, link }) => !leadsSomewhere(page, link)),
    [],
  )
})

test('a link to a missing file or heading is found', () => {
  assert.ok(leadsSomewhere('README.md', 'ARCHITECTURE.md'))
  assert.ok(!leadsSomewhere('README.md', 'missing.md'))
  assert.ok(!leadsSomewhere('README.md', 'ARCHITECTURE.md#no-such-heading'))
})
