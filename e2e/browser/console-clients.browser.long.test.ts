import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
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

test('the page of an agent shows how clients of other protocols use it, by its own values', inBrowser, async () => {
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
