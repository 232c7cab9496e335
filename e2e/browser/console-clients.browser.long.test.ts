import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { maker } from '../../server/test/contract/full-installation.ts'
import { eventually } from '../../server/test/harness.ts'
import { checkPage, checkScreen, startConsole, type TestConsole } from './console.ts'
import { inBrowser } from './chromium.ts'

let cadre: TestConsole
let project: string
let agent: string

before(async () => {
  if (inBrowser.skip) return
  cadre = await startConsole({ CADRE_DOORS: 'openai,mcp,a2a,agui' })
  const make = maker(cadre.send)
  const { id } = await make('/api/v1/projects', { name: 'adas-team' })
  project = `proj_${id}`
  const agents = `/api/v1/projects/${project}/agents`
  const doors = { mcp: { published: true }, agui: { published: true } }
  agent = (await make(agents, { name: 'echo', config: { model: 'builtin/echo', doors } })).id
  await eventually(async () => (await cadre.send('GET', `${agents}/${agent}`)).body.status === 'running')
})
after(() => cadre?.stop())

test('the page of an agent has commands for clients of each protocol, with its address', inBrowser, async () => {
  const page = await cadre.open(`/p/${project}/agents/${agent}?tab=use`)
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  const pick = async (group: string, name: string): Promise<void> => {
    const button = page.getByRole('group', { name: group, exact: true }).getByRole('button', { name, exact: true })
    await button.click()
    await button.and(page.locator('[aria-pressed=true]')).waitFor()
  }
  const copied = async (client: string): Promise<string> => {
    const shown = await page
      .locator('pre')
      .and(page.getByLabel(`Copy for ${client}`))
      .innerText()
    await page.getByRole('button', { name: `Copy for ${client}` }).click()
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), shown)
    return shown
  }
  const run = async (command: string, args: string[]): Promise<string> => {
    const env = { ...process.env, CADRE_API_KEY: cadre.key, NODE_OPTIONS: '' }
    return (await promisify(execFile)(command, args, { env, cwd: new URL('../..', import.meta.url) })).stdout
  }

  await pick('Client', 'curl')
  const chat = JSON.parse(await run('sh', ['-ec', await copied('curl')]))
  assert.equal(chat.choices[0].message.content, 'Hello')
  await pick('Client', 'Codex')
  assert.match(await copied('Codex'), /model = "adas-team\/echo"/)
  await checkScreen(page, 'agent-clients')

  await pick('Protocol', 'MCP')
  assert.ok((await copied('Claude Code')).includes(`${cadre.url}/mcp/agents/${agent}`))
  await page.getByRole('button', { name: 'Copy the address' }).click()
  assert.equal(await page.evaluate('navigator.clipboard.readText()'), `${cadre.url}/mcp/agents/${agent}`)

  await pick('Protocol', 'AG-UI')
  const said = await run(process.execPath, ['--input-type=module', '-e', await copied('AG-UI client')])
  assert.equal(said, 'Hello\n')

  await pick('Protocol', 'A2A')
  await page.getByText('The agent is not published to this protocol.').waitFor()
  await page.getByText('"doors":{"a2a":{"published":true}}').waitFor()
  // What is shown is in the address of the page.
  await page.reload()
  await page.getByText('agent-card.json').first().waitFor()
  checkPage(page)
})

test('the page Connect sends a test call and exports the API for OpenAPI and Bruno', inBrowser, async () => {
  const page = await cadre.open(`/p/${project}/connect`)
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  const tried = page.getByRole('region', { name: 'Try a call' })
  await tried.getByText('200', { exact: true }).waitFor()
  await tried.getByRole('region', { name: 'Response' }).getByText('"echo"').first().waitFor()
  await page.getByRole('link', { name: 'Create a key' }).waitFor()
  const file = async (name: string): Promise<any> => {
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name, exact: true }).click(),
    ])
    return JSON.parse(await readFile(await download.path(), 'utf8'))
  }
  const { paths, openapi } = await file('OpenAPI')
  assert.match(openapi, /^3[.]/)
  const { version, items, environments } = await file('Bruno collection')
  assert.equal(version, '1')
  const requests = items.flatMap((folder: { items: object[] }) => folder.items)
  const operations = Object.values(paths).flatMap((item) =>
    Object.keys(item as object).filter((name) => /^(get|post|put|patch|delete)$/.test(name)),
  )
  assert.equal(requests.length, operations.length)
  const create = requests.find(({ name }: { name: string }) => name === 'Create an agent')
  assert.equal(create.type, 'http')
  assert.equal(create.request.url, '{{base_url}}/api/v1/projects/:project_id/agents')
  assert.equal(typeof JSON.parse(create.request.body.json).name, 'string')
  assert.equal(environments[0].variables[0].value, cadre.url)
  await page.getByRole('button', { name: 'MCP', exact: true }).click()
  const link = await page.getByRole('link', { name: 'Add to VS Code' }).getAttribute('href')
  assert.ok(decodeURIComponent(link ?? '').includes(`${cadre.url}/mcp/agents/${agent}`))
  await checkScreen(page, 'connect')
})

test('an administrator reads requests and settings, drains a worker and runs a purge', inBrowser, async () => {
  const missing = await cadre.send('GET', `/api/v1/projects/${project}/agents/agent_${'0'.repeat(26)}`)
  const page = await cadre.open('/settings/requests')
  const row = page.locator(`[data-row="${missing.headers.get('x-request-id')}"]`)
  await row.getByText('404').waitFor()
  await page.getByLabel('Path, request ID or credential ID').fill(missing.headers.get('x-request-id')!)
  await page.getByRole('navigation', { name: 'Pages of requests' }).getByText('1 request', { exact: true }).waitFor()
  await row.getByRole('link').first().click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText(/requests left in the hour|not counted/).waitFor()
  await dialog.getByRole('button', { name: 'Copy as curl' }).waitFor()
  await checkScreen(page, 'requests')
  await page.keyboard.press('Escape')

  await page.goto('/settings/system')
  await page.getByText('operational').waitFor()
  const workers = page.getByRole('region', { name: 'Workers' })
  await workers.getByText('takes tasks', { exact: true }).waitFor()
  await workers.getByRole('button', { name: 'Drain' }).click()
  await page.getByText('No other worker takes tasks').waitFor()
  await checkScreen(page, 'system-drain')
  await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click()
  await workers.getByText('drained', { exact: true }).waitFor()
  await workers.getByRole('button', { name: 'Resume' }).click()
  await workers.getByText('takes tasks', { exact: true }).waitFor()
  await page.getByLabel('Part of a name').fill('CADRE_DOORS')
  const setting = page.locator('[data-row="CADRE_DOORS"]')
  await setting.waitFor()
  assert.ok((await setting.boundingBox())!.height < 48, 'a setting takes one line')
  await setting.getByText('openai,mcp,a2a,agui').waitFor()
  await setting.getByText('environment').waitFor()
  await checkScreen(page, 'system')
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download support bundle' }).click(),
  ])
  const bundle = await readFile(await download.path(), 'utf8')
  assert.equal(JSON.parse(bundle).status.status, 'operational')
  assert.ok(!bundle.includes(cadre.key))
  await page.getByRole('button', { name: 'Run purge' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Run purge' }).click()
  await page.getByText('Expired data is removed').waitFor()
  checkPage(page)
})

test('an administrator denies unregistered apps and allows them again', inBrowser, async () => {
  const page = await cadre.open('/settings/apps')
  const allows = async (): Promise<boolean> =>
    (await cadre.send('GET', '/api/v1/auth/organization')).body.client_documents
  await page.getByRole('button', { name: 'Deny unregistered apps' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Deny', exact: true }).click()
  await page.getByText('not allowed', { exact: true }).waitFor()
  assert.equal(await allows(), false)
  await checkScreen(page, 'apps-denied')
  await page.getByRole('button', { name: 'Allow unregistered apps' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Allow', exact: true }).click()
  await page.getByText('allowed', { exact: true }).waitFor()
  assert.equal(await allows(), true)
  checkPage(page)
})

test('the page of a task shows its logs, and a chart of the home page can be a table', inBrowser, async () => {
  const task = await cadre.send('POST', `/api/v1/projects/${project}/agents/${agent}/tasks?wait=30`, {
    body: { input: 'Hello' },
  })
  const page = await cadre.open(`/p/${project}/tasks/${task.body.id}?view=logs`)
  await page.getByRole('log').getByText('Task completed').waitFor()
  await checkScreen(page, 'task-logs')
  await page.getByRole('button', { name: 'Transcript' }).click()
  await page.getByRole('button', { name: /builtin.echo/ }).click()
  await page.getByRole('complementary').getByRole('heading', { name: 'Logs' }).waitFor()
  await page.goto(`/p/${project}`)
  await page.getByRole('button', { name: 'Table of Tasks by state and hour' }).click()
  const table = page.getByRole('table', { name: 'Tasks by state and hour' })
  await table.getByRole('row').nth(24).waitFor()
  assert.equal(new URL(page.url()).searchParams.get('table'), 'tasks-by-state-and-hour')
  await page.getByRole('region', { name: 'Usage and limits' }).getByText('No budget is set.').waitFor()
  await checkScreen(page, 'home-table')
})
