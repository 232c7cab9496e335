import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { issuerClients } from '../../server/test/fakes/token-issuer.ts'
import { startIssuer, startTokenServer } from '../../server/test/fakes/token-world.ts'
import { eventually } from '../../server/test/harness.ts'
import { inBrowser } from './chromium.ts'
import { checkPage, checkScreen, startConsole, type TestConsole } from './console.ts'

let cadre: TestConsole
before(async () => {
  if (inBrowser.skip) return
  cadre = await startConsole({ CADRE_EGRESS_ALLOW: 'loopback' })
})
after(() => cadre?.stop())

async function post(path: string, body: object): Promise<any> {
  const answer = await cadre.send('POST', path, { body })
  assert.ok(answer.status < 300, JSON.stringify(answer.body))
  return answer.body
}

test('a person connects a credential on the page of the waiting task, which then completes', inBrowser, async (t) => {
  const issuer = await startIssuer(t)
  const server = await startTokenServer(t, issuer)
  const project = (await post('/api/v1/projects', { name: 'shop' })).id
  const base = `/api/v1/projects/${project}`
  await post(`${base}/credentials`, {
    name: 'TRACKER',
    type: 'oauth2',
    issuer: issuer.issuer,
    grant: 'authorization_code',
    scopes: ['tools:read'],
    allowed_hosts: ['127.0.0.1'],
    ...issuerClients.confidential,
  })
  await post(`${base}/tools`, {
    name: 'issues',
    description: 'Open issues.',
    kind: 'http',
    http: { method: 'GET', url: server.url, headers: { authorization: 'Bearer ${credentials.TRACKER}' } },
  })
  const system_prompt = JSON.stringify([
    { tool_calls: [{ name: 'issues', arguments: {} }] },
    { text: '{{tool_result}}' },
  ])
  const agent = await post(`${base}/agents`, {
    name: 'clerk',
    config: { model: 'builtin/script', tools: ['issues'], system_prompt },
  })
  const { id } = await post(`${base}/agents/${agent.id}/tasks`, { input: 'What is open?' })
  await eventually(async () => (await cadre.send('GET', `${base}/tasks/${id}`)).body.wait?.reason === 'credential')

  const page = await cadre.open(`/p/${project}/tasks/${id}`)
  const box = page.getByRole('region', { name: 'Waiting for a credential' })
  await box.getByText('TRACKER').waitFor()
  await checkScreen(page, 'task-credential')
  const opened = page.context().waitForEvent('page')
  await box.getByRole('button', { name: 'Connect' }).click()
  const tab = await opened
  await tab.getByRole('heading', { name: 'Connected', exact: true }).waitFor()
  await tab.close()
  await page.bringToFront()
  await page.getByText('The task is completed.', { exact: true }).first().waitFor()
  await box.waitFor({ state: 'detached' })

  await page.goto(`/p/${project}/credentials`)
  await page.getByRole('link', { name: 'TRACKER' }).click()
  const second = page.context().waitForEvent('page')
  await page.getByRole('button', { name: 'Connect TRACKER' }).click()
  await page.getByText('Continue at').waitFor()
  await (await second).getByRole('heading', { name: 'Connected', exact: true }).waitFor()
  await page.bringToFront()
  await page.getByText('Continue at').waitFor({ state: 'detached' })
  checkPage(page)
  await page.context().close()
})

test('what the service refuses of a new credential is shown at its field, and is not lost', inBrowser, async () => {
  const project = (await post('/api/v1/projects', { name: 'refusals' })).id
  // The test causes the refusals.
  const page = await cadre.open(`/p/${project}/credentials?panel=new`, { allowed: /400|401/ })
  await page.getByLabel('Name').fill('WEATHER_KEY')
  await page.getByLabel('Secret', { exact: true }).fill('s3cret')
  const hosts = page.getByLabel('Hosts it may be sent to')
  await hosts.fill('api.example.com, https://other.example.com/v1')
  const save = page.getByRole('button', { name: 'Save credential' })
  await save.click()
  const refused = page.locator('[aria-invalid=true]:focus')
  await refused.waitFor()
  assert.equal(await refused.inputValue(), await hosts.inputValue(), 'the cursor is in the refused field')
  await checkScreen(page, 'credential-refused')
  await hosts.fill('api.example.com')
  // After the end of the session the dialog that says so keeps the focus, also where the form under it fails after that.
  const cookies = await page.context().cookies()
  await page.context().clearCookies()
  await save.click()
  const ended = page.getByRole('dialog', { name: 'Your session has ended' })
  await ended.locator(':focus').waitFor()
  const failed = page.waitForResponse((answer) => answer.status() === 401 && answer.request().method() === 'POST')
  await page.evaluate(`document.querySelector('[role=dialog] form').requestSubmit()`)
  await failed
  await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))')
  assert.equal(await ended.locator(':focus').count(), 1)
  await page.context().addCookies(cookies)
  await ended.getByRole('button', { name: 'Not now' }).click()
  await save.click()
  await page.getByRole('link', { name: 'WEATHER_KEY' }).waitFor()
  checkPage(page)
  await page.context().close()
})
