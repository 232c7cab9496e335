import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { agentActions, agentStates } from '#contract/resources/agent-lifecycle.ts'
import { auditActions } from '#contract/accounts/audit.ts'
import { eventNames, moreEventNames, severities } from '#contract/events/events.ts'
import { buckets } from '#contract/core/limits.ts'
import { failuresByStatus } from '#contract/openapi/openapi-problems.ts'
import { operations } from '#contract/operations.ts'
import { problems } from '#contract/core/problems.ts'
import { roles, scopes } from '#contract/core/scopes.ts'
import {
  liveEventTypes,
  stepStates,
  stepTypes,
  taskEventTypes,
  taskStates,
  waitReasons,
} from '#contract/tasks/task-lifecycle.ts'
import { serverCommands } from '../../server/src/commands/commands.ts'
import { ssoSettings } from '../../server/src/config/config-sso.ts'
import { providerSettings, sections } from '../../server/src/config/config-settings.ts'
import { metricList } from '../../server/src/metrics/metric-list.ts'
import { builtPages, referencePages } from './gen-reference.ts'

describe('the reference', () => {
  it('the reference has a row for every setting, and the file variable of every secret', () => {
    const settings = [...Object.values(sections), providerSettings, ssoSettings].flatMap((section) =>
      Object.values(section),
    )
    assertRows(
      'configuration.md',
      settings.map(({ name }) => name),
    )
    const text = pageText('configuration.md')
    for (const { name, secret } of settings) assert.equal(text.includes(`\`${name}_FILE\``), secret, name)
  })

  it('the reference has every code of every problem, and every error of OAuth', () => {
    const text = pageText('errors.md')
    for (const { status, agents, control, message } of Object.values(problems))
      assert.ok(text.includes(`| ${status} | \`${agents}\` | \`${control}\` | ${message} |`), message)
    for (const operation of operations.filter(({ error_format }) => error_format === 'oauth'))
      for (const [status, failures] of failuresByStatus(operation))
        for (const { name } of failures)
          assert.ok(text.includes(`| \`${operation.path}\` | ${status} | \`${name}\` |`), `${operation.id} ${name}`)
  })

  it('the reference has a row for every operation, and counts each in its bucket', () => {
    assertRows(
      'endpoints.md',
      operations.map(({ id }) => id),
    )
    assertRows('limits.md', Object.keys(buckets))
    for (const { id, bucket } of operations)
      if (bucket) assert.match(rowOf('limits.md', bucket), new RegExp(`\`${id}\``))
  })

  it('the reference has a row for every action of the audit log', () => {
    assertRows('audit.md', Object.keys(auditActions))
  })

  it('the reference has a row for every scope, and names the operations that need it', () => {
    assertRows('scopes.md', scopes)
    const text = pageText('scopes.md')
    for (const name of [
      ...roles,
      ...operations.filter(({ credentials }) => credentials.length > 0).map(({ id }) => id),
    ])
      assert.ok(text.includes(name), name)
  })

  it('the reference has a row for every state, action, wait and step', () => {
    assertRows('lifecycles.md', [...agentStates, ...Object.keys(agentActions), ...taskStates])
    assertRows('lifecycles.md', [...waitReasons, ...stepTypes, ...stepStates])
  })

  it('the reference has a row for every event and severity', () => {
    assertRows('events.md', [...eventNames, ...moreEventNames, ...severities, ...taskEventTypes, ...liveEventTypes])
  })

  it('the reference has a row for every metric, and names its labels', () => {
    assertRows('metrics.md', Object.keys(metricList))
    for (const [name, { labels }] of Object.entries(metricList))
      for (const label of Object.keys(labels)) assert.ok(rowOf('metrics.md', name).includes(`\`${label}\``), name)
  })

  it('the reference has a section for every command, with all its options', async () => {
    const text = pageText('commands.md')
    for (const [name, { load }] of Object.entries(serverCommands)) {
      const [, section = ''] = text.split(`\n## cadre ${name}\n`)
      const [own = ''] = section.split('\n## ')
      assert.ok(own.includes(`    cadre ${name} [options]`), name)
      for (const option of Object.keys((await load()).options)) assert.match(own, new RegExp(`\`[^\`]*--${option}\\b`))
    }
  })

  it('the reference has tables whose rows are as wide as their heads', () => {
    for (const [file, make] of Object.entries({ ...referencePages, ...builtPages }))
      for (const table of make()
        .split('\n\n')
        .filter((part) => part.startsWith('|'))) {
        const widths = table
          .trim()
          .split('\n')
          .map((line) => line.split(/(?<!\\)\|/).length)
        assert.equal(new Set(widths).size, 1, `${file}: ${table.slice(0, 80)}`)
      }
  })
})

function pageText(file: string): string {
  const make = referencePages[`docs/reference/${file}`] ?? builtPages[`dist/reference/${file}`]
  assert.ok(make, file)
  return make()
}

function assertRows(file: string, names: Iterable<string>): void {
  for (const name of names) rowOf(file, name)
}

/** The row of a name: the line of a table that begins with it. */
function rowOf(file: string, name: string): string {
  const row = pageText(file)
    .split('\n')
    .find((line) => line.startsWith(`| \`${name}\``))
  assert.ok(row, `${file} has no row for ${name}`)
  return row
}
