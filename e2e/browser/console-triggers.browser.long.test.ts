import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { maker } from '../../server/test/contract/full-installation.ts'
import { eventually } from '../../server/test/harness.ts'
import { checkPage, checkScreen, choose, chooseAgent, startConsole, type TestConsole } from './console.ts'
import { inBrowser } from './chromium.ts'

let cadre: TestConsole
let project: string

before(async () => {
  if (inBrowser.skip) return
  cadre = await startConsole()
  const make = maker(cadre.send)
  const { id } = await make('/api/v1/projects', { name: 'triggers' })
  project = `proj_${id}`
  const agents = `/api/v1/projects/${project}/agents`
  const agent = await make(agents, { name: 'echo', config: { model: 'builtin/echo' } })
  await eventually(async () => (await cadre.send('GET', `${agents}/${agent.id}`)).body.status === 'running')
})
after(() => cadre?.stop())

test(
  'a trigger is created, the commands on its page send a delivery, the delivery is replayed, and the trigger is changed and deleted',
  inBrowser,
  async () => {
    const page = await cadre.open(`/p/${project}/triggers`)
    const button = (name: string) => page.getByRole('button', { name, exact: true })
    const dialog = page.getByRole('dialog')
    await button('Create a trigger').click()
    await dialog.getByLabel('Name').fill('Greetings')
    await chooseAgent(page, 'echo')
    await choose(page, 'Source', 'Slack')
    await dialog.getByLabel('Secret').waitFor()
    await choose(page, 'Source', 'Any, signed by HMAC')
    await dialog.getByLabel('Filter (optional)').fill('[{"path": ')
    await dialog.getByText('Enter a JSON list of conditions').waitFor()
    await dialog.getByLabel('Filter (optional)').fill('[{"path": "body.hello", "op": "exists"}]')
    await dialog.getByLabel('Task input (optional)').fill('Greet {{body.hello}}.')
    await checkScreen(page, 'triggers-new')
    await dialog.getByRole('button', { name: 'Create trigger' }).click()

    const address = (await page.getByTestId('secret').textContent()) ?? ''
    assert.match(address, /\/hooks\/[A-Za-z0-9_-]{43}$/)
    const commands = await dialog.getByLabel('Copy the commands').first().textContent()
    await checkScreen(page, 'triggers-reveal')
    const { stdout } = await promisify(execFile)('sh', ['-ec', commands ?? ''])
    assert.equal(JSON.parse(stdout).status, 'accepted')
    await page.getByLabel('I have saved it').check()
    await button('Done').click()
    await checkScreen(page, 'triggers')

    await page.getByRole('link', { name: 'Greetings' }).click()
    await page.getByRole('heading', { name: 'Greetings' }).waitFor()
    const rows = page.getByRole('table', { name: 'Deliveries' }).locator('tbody tr')
    await rows.first().waitFor()
    assert.equal(await rows.count(), 1)
    await page.getByRole('button', { name: /^Replay the delivery/ }).click()
    await page.getByText('Replayed: a task has it').waitFor()
    await eventually(async () => (await rows.count()) === 2)
    await page
      .getByRole('button', { name: /^Show the delivery/ })
      .first()
      .click()
    await dialog.getByText('{"hello": "world"}').waitFor()
    await checkScreen(page, 'trigger-delivery')
    await page.keyboard.press('Escape')
    await checkScreen(page, 'trigger')
    await page.getByRole('link', { name: 'Tasks of this trigger' }).click()
    await page.getByText('1–2 of 2 tasks').waitFor()
    // The note and the marks that its model reads are no title.
    await page.getByRole('link', { name: 'Greet world.', exact: true }).first().waitFor()
    await page.getByRole('table').getByRole('link', { name: 'Trigger', exact: true }).first().click()
    await page.getByRole('heading', { name: 'Greetings' }).waitFor()

    await button('Pause').click()
    await button('Resume').waitFor()
    await button('Undo').click()
    await button('Pause').click()
    await button('Resume').waitFor()
    await button('Edit').click()
    await dialog.getByLabel('Name').fill('Farewells')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Farewells' }).waitFor()
    // On a telephone the lesser actions are in a menu.
    await page.setViewportSize({ width: 390, height: 844 })
    await button('Rotate address').waitFor({ state: 'hidden' })
    await button('More actions').click()
    await page.getByRole('menuitem', { name: 'Rotate address' }).click()
    await dialog.getByRole('button', { name: 'Rotate address' }).waitFor()
    await page.setViewportSize({ width: 1440, height: 900 })
    await dialog.getByRole('button', { name: 'Rotate address' }).click()
    assert.notEqual(await page.getByTestId('secret').textContent(), address)
    await page.getByLabel('I have saved it').check()
    await button('Done').click()
    await button('Delete').click()
    await dialog.getByRole('textbox').fill('Farewells')
    await dialog.getByRole('button', { name: 'Delete trigger' }).click()
    await page.getByText('No triggers yet').waitFor()
    checkPage(page)
    await page.context().close()
  },
)
