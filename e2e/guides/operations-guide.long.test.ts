import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import { eventually, makeTestDatabase, sender } from '../../server/test/harness.ts'
import { metricList } from '../../server/src/metrics/metric-list.ts'
import { databaseEnvironment, type RunningService, runCommand, startProcess } from '../process.ts'

const guide = readFileSync(new URL('../../docs/guides/running-in-production.md', import.meta.url), 'utf8')
const api_key = `cadre_${'0123456789abcdef'.repeat(2)}`

/** The first block of code below a heading. */
function block(heading: string, language: string): string {
  const text = guide.split(`\n## ${heading}\n`)[1]?.split(`\`\`\`${language}\n`)[1]?.split('\n```')[0]
  assert.ok(text, heading)
  return text
}

describe('the guide to running in production', () => {
  let database: Awaited<ReturnType<typeof makeTestDatabase>>
  let env: Record<string, string>
  let service: RunningService
  before(async () => {
    database = await makeTestDatabase()
    env = databaseEnvironment(database.connection)
    const more = { CADRE_LOG_LEVEL: 'info', CADRE_ADMIN_API_KEY: api_key, CADRE_METRICS_PORT: '0' }
    service = await startProcess({ ...env, ...more })
  })
  after(async () => {
    await service.end()
    await database.drop()
  })

  it('the guide to running in production names only existing metrics and labels', async () => {
    const url = /^ {2}Metrics +(\S+)$/m.exec(service.output())?.[1]
    assert.ok(url)
    const page = await (await fetch(url)).text()
    const used = [...guide.matchAll(/\b(cadre_[a-z_]+)(?:\{(\w+)=)?/g)]
    assert.ok(used.length > 6)
    for (const [, name = '', label] of used) {
      const definition = Object.entries(metricList).find(([known]) => known === name)?.[1]
      assert.ok(definition, name)
      assert.ok(page.includes(`# TYPE ${name} `), name)
      if (label !== undefined) assert.ok(Object.hasOwn(definition.labels, label), `${name} ${label}`)
    }
  })

  it('the guide to running in production shows commands that work as they stand', async () => {
    const lines = block('Commands', 'sh').split('\n')
    assert.equal(lines.length, 4)
    for (const line of lines) {
      const [node, script, ...args] = line.replace(/#.*/, '').trim().split(/ +/)
      assert.deepEqual([node, script], ['node', 'cadre.mjs'])
      const { code, stderr } = await runCommand(env, args)
      // The address of the example does not exist.
      const expected = args.includes('reset-password')
        ? [1, 'No active user has the email address you@example.com.\n']
        : [0]
      assert.deepEqual([code, stderr].slice(0, expected.length), expected, line)
    }
  })

  it('the guide to running in production tunes existing tables with settings of PostgreSQL', async () => {
    const admin = new pg.Client(database.connection)
    await admin.connect()
    try {
      await admin.query(block('Tuning PostgreSQL', 'sql'))
      const role = guide.split('\n### Behind a pooler\n')[1]!.split('```sql\n')[1]!.split('\n```')[0]!
      await admin.query('begin')
      await admin.query(role.replaceAll('role cadre', `role "${database.connection.user}"`))
      await admin.query('rollback')
      const rows = guide
        .split('\n## Tuning PostgreSQL\n')[1]!
        .split('\n## ')[0]!
        .matchAll(/^\| (`[a-z_`, ]+`) \|/gm)
      const names = [...rows].flatMap(([, cell]) => [...cell!.matchAll(/`(\w+)`/g)].map(([, name]) => name!))
      assert.ok(names.length > 8)
      const known = await admin.query('select name from pg_settings where name = any($1)', [names])
      assert.equal(known.rowCount, names.length)
    } finally {
      await admin.end()
    }
  })

  it('the guide to running in production shows the actual form of a log entry', async () => {
    const shown = JSON.parse(block('Logs', 'json'))
    await sender(service.url, api_key)('GET', shown.path)
    const entry = await eventually(async () =>
      service
        .output()
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line))
        .find(({ msg, path }) => msg === 'request' && path === shown.path),
    )
    assert.deepEqual(Object.keys(entry), Object.keys(shown))
  })
})
