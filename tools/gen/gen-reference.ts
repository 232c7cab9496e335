import { auditPage } from './reference/audit.ts'
import { cliPage } from './reference/cli.ts'
import { commandsPage } from './reference/commands.ts'
import { configurationPage } from './reference/configuration.ts'
import { endpointsPage } from './reference/endpoints.ts'
import { errorsPage } from './reference/errors.ts'
import { eventsPage } from './reference/events.ts'
import { lifecyclesPage } from './reference/lifecycles.ts'
import { limitsPage } from './reference/limits.ts'
import { renderPage, type Page } from './reference/markdown.ts'
import { metricsPage } from './reference/metrics.ts'
import { scopesPage } from './reference/scopes.ts'

/** Short pages that are reviewed as a diff: committed in `docs/reference`. */
const committed: Record<string, Page> = {
  'configuration.md': configurationPage,
  'errors.md': errorsPage,
  'limits.md': limitsPage,
  'scopes.md': scopesPage,
  'lifecycles.md': lifecyclesPage,
  'events.md': eventsPage,
  'audit.md': auditPage,
  'metrics.md': metricsPage,
}

/** Long lists that follow from the code line by line: built into `dist/reference`. */
const built: Record<string, Page> = {
  'endpoints.md': endpointsPage,
  'cli.md': cliPage,
  'commands.md': commandsPage,
}

const contents: Page = {
  title: 'Reference',
  intro: 'Facts to look up, generated from the code. The [guides](../guides) explain how to do things.',
  sources: ['tools/gen/gen-reference.ts'],
  body: () =>
    [
      listOf(committed, (file, title) => `[${title}](${file})`),
      '`npm run gen` and `npm run build` also write these pages, which are not committed:',
      listOf(built, (file, title) => `${title} (\`dist/reference/${file}\`)`),
    ].join('\n\n'),
}

function listOf(pages: Record<string, Page>, name: (file: string, title: string) => string): string {
  return Object.entries(pages)
    .map(([file, { title, intro }]) => `- ${name(file, title)}: ${intro}`)
    .join('\n')
}

/** Committed pages of the reference: their path in the repository, and what makes their text. */
export const referencePages = textsOf('docs/reference', { 'README.md': contents, ...committed })

/** Pages of the reference that are built and not committed. */
export const builtPages = textsOf('dist/reference', built)

function textsOf(folder: string, pages: Record<string, Page>): Record<string, () => string> {
  return Object.fromEntries(Object.entries(pages).map(([file, page]) => [`${folder}/${file}`, () => renderPage(page)]))
}
