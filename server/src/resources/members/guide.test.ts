import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'
import { roles } from '#contract/core/scopes.ts'
import { makeKey, makePerson, makeSession, ownerOf } from '../../../test/actors.ts'
import { shareTestService } from '../../../test/shared-service.ts'

const guide = readFileSync(new URL('../../../../docs/guides/organizations.md', import.meta.url), 'utf8')
const examples = [...guide.matchAll(/```http\n(\w+) (\S+)\n(?:([\w-]+): (\S+)\n)?(?:\n(.*?))?```/gs)].map(
  ([, method = '', path = '', header, value = '', body]) => ({ method, path, header, value, body }),
)

it('the guide of organizations does what it says, and names every role', async (t) => {
  const test = await shareTestService()
  t.after(() => test.stop())
  const owner = ownerOf(test)
  const { cookie } = await makeSession(test, owner)
  const member = await makePerson(test, 'member', owner.org_id)
  const made: Record<string, string> = {
    user_id: member.user_id,
    organization_id: owner.org_id,
    key_id: (await makeKey(test, owner, ['read'])).id,
  }
  const filled = (text: string): string => text.replaceAll(/\{(\w+)\}/g, (_, name: string) => made[name] ?? name)

  assert.equal(examples.length, [...guide.matchAll(/```http/g)].length)
  assert.ok(examples.length >= 10)
  for (const { method, path, header, value, body } of examples) {
    const reply = await test.send(method, `/api/v1/auth${filled(path)}`, {
      cookie,
      ...(header === undefined ? {} : { headers: { [header]: filled(value) } }),
      ...(body === undefined ? {} : { body }),
    })
    const where = `${method} ${path} ${JSON.stringify(reply.body)}`
    assert.equal(reply.status, method === 'POST' && !path.endsWith('/rotate') ? 201 : 200, where)
    if (path === '/invitations') made.invitation_id = reply.body.id
    if (header !== undefined) assert.equal(reply.body.id, owner.org_id)
    if (path.endsWith('/rotate')) {
      const { updated_at, previous_expires_at } = reply.body
      assert.equal(Date.parse(previous_expires_at) - Date.parse(updated_at), 3600_000)
    }
  }
  const [, head = ''] = /\n(\| \|.*owner.*)\n/.exec(guide) ?? []
  assert.deepEqual(head.match(/\w+/g), [...roles])
})
