import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestService, type TestService } from '../../server/test/harness.ts'
import { OAuthDriver } from '../../server/test/oauth.ts'
import { faultsOf, inBrowser, openPage, useBrowser } from './chromium.ts'

const password = 'seven grey herons'

let service: TestService
let used: Awaited<ReturnType<typeof useBrowser>>

before(async () => {
  if (inBrowser.skip) return
  service = await startTestService()
  await new OAuthDriver(service).user('ada@example.com', password)
  used = await useBrowser()
})

after(async () => {
  used?.release()
  await service?.stop()
})

/** A link into the owner's organization. */
async function invite(body: object): Promise<string> {
  const reply = await service.send('POST', '/api/v1/auth/invitations', { body })
  assert.equal(reply.status, 201, JSON.stringify(reply.body))
  return reply.body.url
}

async function membersOf(): Promise<[email: string, role: string][]> {
  const { body } = await service.send('GET', '/api/v1/auth/members')
  return body.members.map(({ email, role }: { email: string; role: string }) => [email, role])
}

test('a new user opens an invitation, creates an account and is a member, without JavaScript', inBrowser, async () => {
  const page = await openPage(used.browser, { width: 390, colorScheme: 'light' })
  const url = await invite({ role: 'viewer', email: 'grace@example.com' })
  await page.goto(url)
  await page.getByRole('heading', { name: 'Join My organization' }).waitFor()
  assert.equal(await page.getByLabel('E-mail address').inputValue(), 'grace@example.com')
  assert.equal(await page.getByLabel('E-mail address').isEditable(), false)
  await page.getByLabel('Name').fill('Grace Hopper')
  await page.getByLabel('Password').fill('password1234')
  await page.getByRole('button', { name: 'Create account and join' }).click()
  await page.getByText('Password is one of the most common passwords.').waitFor()
  await page.getByLabel('Password').fill('nine black swans')
  await page.getByRole('button', { name: 'Create account and join' }).click()
  await page.getByRole('heading', { name: 'Welcome to My organization' }).waitFor()
  assert.deepEqual(await membersOf(), [
    ['owner@example.com', 'owner'],
    ['grace@example.com', 'viewer'],
  ])
  await page.reload()
  await page.getByRole('heading', { name: 'Welcome to My organization' }).waitFor()
  await page.context().close()
})

test(
  'a user with an account opens an invitation, signs in and joins, without JavaScript, and the link is used up',
  inBrowser,
  async () => {
    const page = await openPage(used.browser, { width: 1440, colorScheme: 'dark' })
    const url = await invite({ role: 'member' })
    await page.goto(url)
    await page.getByRole('link', { name: 'I have an account' }).click()
    await page.getByText('to continue to My organization').waitFor()
    await page.getByLabel('E-mail address').fill('ada@example.com')
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('button', { name: 'Join' }).click()
    await page.getByRole('heading', { name: 'Welcome to My organization' }).waitFor()
    assert.deepEqual((await membersOf()).at(-1), ['ada@example.com', 'member'])

    const another = await openPage(used.browser, { width: 390, colorScheme: 'light' })
    const answer = await another.goto(url)
    assert.equal(answer?.status(), 404, 'for all others the link is used up')
    await another.getByRole('heading', { name: 'This invitation does not work' }).waitFor()
    await Promise.all([page.context().close(), another.context().close()])
  },
)

test(
  'the pages of an invitation fit a telephone and a desk, light and dark, and have no fault that axe can see',
  inBrowser,
  async () => {
    const open = await invite({ role: 'admin' })
    const bound = await invite({ role: 'admin', email: 'other@example.com' })
    for (const width of [390, 1440]) {
      for (const colorScheme of ['light', 'dark'] as const) {
        const page = await openPage(used.browser, { width, colorScheme }, true)
        const look = async (what: string): Promise<void> => {
          assert.deepEqual(await faultsOf(page), [], `${what} at ${width}, ${colorScheme}`)
        }
        await page.goto(open)
        await look('invited')
        await page.goto(`${open}x`)
        await look('gone')
        await page.goto(`${new URL('/login', open).href}?return_to=${new URL(open).pathname}`)
        await page.getByLabel('E-mail address').fill('ada@example.com')
        await page.getByLabel('Password').fill(password)
        await page.getByRole('button', { name: 'Sign in' }).click()
        await page.getByRole('heading', { name: 'You are already a member' }).waitFor()
        await look('member')
        await service.sql`delete from member where user_id = (select id from app_user where email = 'ada@example.com')
        and org_id = ${service.owner.org_id}`
        await page.goto(open)
        await look('join')
        await page.goto(bound)
        await look('for-another')
        await service.sql`insert into member (org_id, user_id, role)
        select ${service.owner.org_id}, id, 'member' from app_user where email = 'ada@example.com'`
        await page.context().close()
      }
    }
  },
)
