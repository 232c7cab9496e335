import { randomBytes } from 'node:crypto'
import { scopes } from '#contract/core/scopes.ts'
import { createPasswords } from '../src/platform/crypto/passwords.ts'
import { insertApiKey, newApiKey } from '../src/resources/api-keys/api-keys.queries.ts'
import { insertClient, newClientSecret } from '../src/resources/oauth/oauth-clients.queries.ts'
import { insertOrganization, insertUser } from '../src/resources/users/users.queries.ts'
import { atEnd, isGroup } from './at-end.ts'
import { sender, startTestService, type TestService } from './harness.ts'

/** The service of this process, and the number of files that use it. */
let running: { service: Promise<TestService>; users: number } | undefined

const password = 'correct horse battery staple'
let password_hash: Promise<string> | undefined

/**
 * A service that the files of a process share: starting one for each takes a second of a processor. `owner` is a new owner of
 * a new organization with all that the first owner of a service has. For tests that look only at what is theirs; those of
 * counts over all organizations, of the first owner, of connections, limits or stops use `startTestService`. So do those of
 * settings: a service that does nothing takes a few percent of a processor until the process ends. `stop` ends the work of
 * the organization.
 */
export async function shareTestService(): Promise<TestService> {
  const shared = (running ??= { service: startTestService(), users: 0 })
  shared.users += 1
  const test = await shared.service
  const owner = await makeOwner(test)
  return {
    ...test,
    owner,
    send: sender(test.url, owner.api_key),
    async stop() {
      await endWork(test, owner.org_id)
      shared.users -= 1
      if (shared.users > 0 || isGroup) return
      running = undefined
      await test.stop()
    },
  }
}

atEnd.push(async () => {
  const last = running
  running = undefined
  await (await last?.service)?.stop()
})

async function makeOwner({ sql, owner: first }: TestService): Promise<TestService['owner']> {
  const name = randomBytes(6).toString('hex')
  password_hash ??= createPasswords().hash(password)
  const email = `owner-${name}@example.com`
  const user = await insertUser(sql, { email, name: 'Owner', password_hash: await password_hash })
  if (!user) throw new Error(`${email} is taken`)
  const { id: org_id } = await insertOrganization(sql, 'My organization', user.id)
  const owner = {
    ...first,
    email,
    user_id: user.id,
    org_id,
    api_key: newApiKey(),
    oauth_client_id: `first-app-${name}`,
    oauth_client_secret: newClientSecret(),
  }
  await insertApiKey(sql, owner, owner.api_key, {
    name: 'First key',
    description: 'Made at the first start.',
    scopes: ['admin'],
    expires_at: null,
  })
  await insertClient(sql, org_id, {
    client_id: owner.oauth_client_id,
    name: 'First app',
    secret: owner.oauth_client_secret,
    redirect_uris: [owner.oauth_redirect_uri],
    scopes: [...scopes],
    native: false,
  })
  return owner
}

/** Ends tasks, which occupy slots of the worker, schedules, which create more, and webhooks, which are retried. */
async function endWork({ sql, service }: TestService, org_id: string): Promise<void> {
  await sql`update schedule s set status = 'paused', next_run_at = null from project p where p.id = s.project_id and p.org_id = ${org_id}`
  await sql`update webhook set status = 'disabled' where org_id = ${org_id}`
  const agents = await sql<{ id: string }>`
    select distinct a.id from agent a join project p on p.id = a.project_id join task t on t.agent_id = a.id
    where p.org_id = ${org_id} and t.finished_at is null`
  for (const { id } of agents) await sql.begin((tx) => service.context.engine.cancelTasks(tx, id))
}
