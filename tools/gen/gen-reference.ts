import { writeFileSync } from 'node:fs'
import { auditPage } from './reference/audit.ts'
import { cliPage } from './reference/cli.ts'
import { commandsPage } from './reference/commands.ts'
import { configurationPage } from './reference/configuration.ts'
import { errorsPage } from './reference/errors.ts'
import { eventsPage } from './reference/events.ts'
import { lifecyclesPage } from './reference/lifecycles.ts'
import { limitsPage } from './reference/limits.ts'
import { renderPage, type Page } from './reference/markdown.ts'
import { metricsPage } from './reference/metrics.ts'
import { operationsPage } from './reference/operations.ts'
import { scopesPage } from './reference/scopes.ts'

const folder = 'docs/reference'

const pages: Record<string, Page> = {
  'configuration.md': configurationPage,
  'commands.md': commandsPage,
  'cli.md': cliPage,
  'operations.md': operationsPage,
  'errors.md': errorsPage,
  'limits.md': limitsPage,
  'scopes.md': scopesPage,
  'lifecycles.md': lifecyclesPage,
  'events.md': eventsPage,
  'audit.md': auditPage,
  'metrics.md': metricsPage,
}

const contents: Page = {
  title: 'Reference',
  intro: 'Facts to look up, made from the code that they are true of; how to do things is in the [guides](../guides).',
  sources: ['tools/gen/gen-reference.ts'],
  body: () =>
    Object.entries(pages)
      .map(([file, { title, intro }]) => `- [${title}](${file}): ${intro}`)
      .join('\n'),
}

/** The pages of the reference by their path in the repository, with what makes their text. */
export const referencePages: Record<string, () => string> = Object.fromEntries(
  Object.entries({ 'README.md': contents, ...pages }).map(([file, page]) => [
    `${folder}/${file}`,
    () => renderPage(page),
  ]),
)

if (import.meta.main)
  for (const [file, make] of Object.entries(referencePages))
    writeFileSync(new URL(`../../${file}`, import.meta.url), make())
