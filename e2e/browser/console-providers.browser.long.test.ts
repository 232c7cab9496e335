import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { checkPage, checkScreen, choose, startConsole, type TestConsole } from './console.ts'
import { inBrowser } from './chromium.ts'

const [firstKey, secondKey] = ['sk-the-first-key-of-acme', 'sk-the-second-key-of-acme']

let cadre: TestConsole
let provider: Server
let base_url: string
const keys: unknown[] = []

/** Lists models if the request has the second key. */
function answer({ headers }: IncomingMessage): { status: number; body: string } {
  keys.push(headers.authorization)
  const isKnown = headers.authorization === `Bearer ${secondKey}`
  return isKnown ? { status: 200, body: '{"data":[{"id":"large"}]}' } : { status: 401, body: '{}' }
}

before(async () => {
  if (inBrowser.skip) return
  provider = createServer((request, response) => {
    const { status, body } = answer(request)
    response.writeHead(status, { 'content-type': 'application/json' }).end(body)
  }).listen(0, '127.0.0.1')
  await once(provider, 'listening')
  base_url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`
  cadre = await startConsole({ CADRE_EGRESS_ALLOW: 'loopback' })
  const made = await cadre.send('POST', '/api/v1/projects', { body: { name: 'shop' } })
  assert.equal(made.status, 201)
})
after(async () => {
  await cadre?.stop()
  provider?.close()
})

test(
  'a model provider of the organization is added, tested, given another key, limited to a project, priced and deleted',
  inBrowser,
  async () => {
    const page = await cadre.open('/settings/model-providers', { allowed: /api\/v1\/model-providers/ })
    const dialog = page.getByRole('dialog')
    const own = page.getByRole('region', { name: 'acme' })
    const press = (name: string) => own.getByRole('button', { name, exact: true }).click()
    await page.getByText('builtin/script').waitFor()
    await page.getByRole('button', { name: 'Add a provider', exact: true }).click()
    await choose(page, 'Kind', 'Another server that speaks an OpenAI protocol')
    await dialog.getByLabel('Name').fill('builtin')
    await dialog.getByLabel('Base URL').fill(base_url)
    await dialog.getByLabel('API key (optional)').fill(firstKey)
    await dialog.getByRole('button', { name: 'Add provider' }).click()
    await dialog.getByText('is reserved for the built-in provider; choose another name').first().waitFor()
    await dialog.getByLabel('Name').fill('acme')
    await checkScreen(page, 'model-provider-new')
    await dialog.getByRole('button', { name: 'Add provider' }).click()
    await own.getByText('refused', { exact: true }).waitFor()
    await own.getByText('…acme').waitFor()
    await checkScreen(page, 'model-providers-own', { isOnTablet: true })

    await press('Test')
    await dialog.getByRole('button', { name: 'Test', exact: true }).click()
    await dialog.getByText(/It answered 401/).waitFor()
    await checkScreen(page, 'model-provider-test')
    await page.keyboard.press('Escape')

    await press('Rotate key')
    await dialog.getByLabel('New API key').fill(secondKey)
    await dialog.getByRole('button', { name: 'Rotate key' }).click()
    await own.getByText('acme/large').waitFor()
    assert.deepEqual([keys[0], keys.at(-1)], [`Bearer ${firstKey}`, `Bearer ${secondKey}`])

    await press('Projects')
    await dialog.getByLabel('All projects, also new ones').uncheck()
    await dialog.getByLabel('shop').check()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await own.getByText('shop', { exact: true }).waitFor()

    await press('Prices')
    await dialog.getByLabel('Model', { exact: true }).fill('large')
    await dialog.getByLabel('Input', { exact: true }).fill('0.1')
    const save = dialog.getByRole('button', { name: 'Save prices' })
    assert.equal(await save.getAttribute('title'), 'Enter the price of large: output')
    await dialog.getByLabel('Output').fill('0.4')
    await checkScreen(page, 'model-provider-prices')
    await save.click()
    await own.getByText('$0.10 in, $0.40 out').waitFor()
    const { body: list } = await cadre.send('GET', '/api/v1/model-providers')
    const { prices } = list.model_providers.find(({ name }: { name: string }) => name === 'acme').own
    assert.deepEqual(prices, { large: { input: 0.1, output: 0.4 } })

    await press('Remove key')
    await dialog.getByText('New calls carry no key.').waitFor()
    await dialog.getByRole('button', { name: 'Remove key' }).click()
    await own.getByRole('button', { name: 'Add key' }).waitFor()
    assert.ok(!(await own.innerText()).includes('…'))

    await press('Delete')
    await dialog.getByLabel('Type acme to confirm').fill('acme')
    await dialog.getByRole('button', { name: 'Delete provider' }).click()
    await own.waitFor({ state: 'detached' })
    assert.ok(!(await page.content()).includes(secondKey))
    checkPage(page)
    await page.context().close()
  },
)
