import assert from 'node:assert/strict'
import { after, before, describe, it, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { makeSession, ownerOf } from '../../server/test/actors.ts'
import { startLocalServer } from '../../server/test/fakes/local-server.ts'
import { issuerClients, TokenIssuer } from '../../server/test/fakes/token-issuer.ts'
import { eventually, startTestService, type TestService } from '../../server/test/harness.ts'
import { longSizeOf } from '../../server/test/long-run.ts'
import { makeRng, testSeed } from '../../server/test/rng.ts'
import { makeTokenWorld, type TokenWorld } from '../../server/test/fakes/token-world.ts'
import { databaseEnvironment, startProcess, type RunningService } from '../process.ts'

const processes = longSizeOf({ usual: 3, full: 4 })
/** Seconds. */
const lifetime = 5
const tasks = longSizeOf({ usual: 6, full: 10 })
const callsOfTask = longSizeOf({ usual: 12, full: 20 })
/** Moments at which processes are killed. */
const killsMax = longSizeOf({ usual: 4, full: 1000 })
/** How long the server takes for a call: the calls of a task last longer than two tokens. */
const call_ms = 450

/** A database with a service that serves the API alone, whose tasks the processes of a test work on. */
let api: TestService
let world: TokenWorld
let env: Record<string, string>
before(async () => {
  api = await startTestService({ CADRE_EGRESS_ALLOW: 'loopback', CADRE_WORKER_SLOTS: '1' })
  world = await makeTokenWorld(api)
  env = {
    ...databaseEnvironment(api.service.context.database.settings),
    CADRE_EGRESS_ALLOW: 'loopback',
    CADRE_WORKER_SLOTS: '4',
  }
})
after(() => api.stop())

interface SlowServer {
  url: string
  verdicts: string[]
}

async function startSlowServer(t: TestContext, issuer: TokenIssuer): Promise<SlowServer> {
  const verdicts: string[] = []
  const { url } = await startLocalServer(t, async (request, response) => {
    const verdict = await issuer.judge(request.headers.authorization)
    verdicts.push(verdict)
    setTimeout(() => response.writeHead(verdict === 'good' ? 200 : 401).end(verdict), call_ms)
  })
  return { url, verdicts }
}

/** Creates the tasks, whose calls of a tool may be repeated. */
async function startTasks(server: SlowServer, credential: string): Promise<{ id: string }[]> {
  const target = { ...server, calls: [], refuses: 0 }
  const agent = await world.agent(target, credential, { calls: callsOfTask })
  return Promise.all(
    Array.from({ length: tasks }, async () => {
      const { body } = await world.call('POST', `/agents/${agent}/tasks`, { input: 'Go.' })
      return body as { id: string }
    }),
  )
}

const statusOf = async ({ id }: { id: string }) => (await world.call('GET', `/tasks/${id}`)).body

async function connect(issuer: TokenIssuer, id: string): Promise<void> {
  const { body } = await world.call('POST', `/credentials/${id}/authorize`)
  const callback = await issuer.approve(body.url)
  const { cookie } = await makeSession(api, ownerOf(api))
  const page = await api.send('GET', `${callback.pathname}${callback.search}`, { cookie })
  assert.equal(page.status, 200)
}

async function startAll(t: TestContext): Promise<RunningService[]> {
  const running = await Promise.all(
    Array.from({ length: processes }, () => startProcess(env, { args: ['--role', 'worker'] })),
  )
  t.after(() => Promise.all(running.map((one) => one.end())))
  return running
}

/**
 * Kills a process at random times and starts another one, `killsMax` times or until `isOver`. With an issuer, half of
 * the kills hit a process while it requests tokens.
 */
async function killUntil(running: RunningService[], isOver: () => boolean, issuer?: TokenIssuer): Promise<number> {
  const seed = testSeed()
  console.log(`seed ${seed}`)
  const rng = makeRng(seed)
  let kills = 0
  for (let nth = 0; nth < killsMax && !isOver(); nth++) {
    await delay(rng.between(200, 2500))
    const asked = issuer?.tokenRequests.length
    if (issuer) await eventually(async () => isOver() || issuer.tokenRequests.length !== asked)
    const killed = rng.shuffled(running.map((_, at) => at)).slice(0, issuer ? Math.floor(processes / 2) : 1)
    await Promise.all(killed.map((at) => running[at]!.end('SIGKILL')))
    kills += killed.length
    for (const at of killed) running[at] = await startProcess(env, { args: ['--role', 'worker'] })
  }
  return kills
}

const everyTask = (all: readonly { id: string }[], statuses: readonly string[]) =>
  eventually(async () => {
    const now = await Promise.all(all.map(statusOf))
    return now.every(({ status }) => statuses.includes(status)) && now
  }, 300_000)

describe('calls over several processes with tokens of 5 seconds', { timeout: 600_000 }, () => {
  for (const grant of ['client_credentials', 'authorization_code'] as const)
    it(`calls of several processes never have an expired token of the grant ${grant}, and one process renews it for all`, async (t) => {
      const issuer = await TokenIssuer.start({ lifetime })
      t.after(() => issuer.stop())
      const server = await startSlowServer(t, issuer)
      const client = grant === 'client_credentials' ? issuerClients.own : issuerClients.confidential
      const { id, name } = await world.credential(issuer, { grant, ...client })
      if (grant === 'authorization_code') await connect(issuer, id)
      await startAll(t)
      const before = issuer.issued.length
      const began_at = performance.now()
      for (const task of await everyTask(await startTasks(server, name), ['completed'])) assert.equal(task.error, null)
      const seconds = (performance.now() - began_at) / 1000
      const renewals = issuer.issued.length - before
      console.log(`${grant}: ${server.verdicts.length} calls in ${seconds.toFixed(1)} s, ${renewals} renewals`)
      // A process that stands still for longer than its lease loses tasks, whose calls may be repeated.
      assert.ok(server.verdicts.length >= tasks * callsOfTask)
      assert.deepEqual(
        server.verdicts.filter((verdict) => verdict !== 'good'),
        [],
      )
      // The first finds a token that ended before the tasks began.
      const most = Math.floor(seconds / (lifetime - lifetime / 5)) + 1
      assert.ok(renewals <= most, `${renewals} renewals in ${seconds} s`)
      assert.ok(renewals >= 2, 'the calls lasted longer than two tokens')
    })

  it('calls over several processes all succeed if processes are killed, and none has an expired token', async (t) => {
    const issuer = await TokenIssuer.start({ lifetime })
    t.after(() => issuer.stop())
    const server = await startSlowServer(t, issuer)
    const { name } = await world.credential(issuer)
    const running = await startAll(t)
    const began_at = performance.now()
    const made = await startTasks(server, name)
    let isOver = false
    const killing = killUntil(running, () => isOver)
    await everyTask(made, ['completed'])
    isOver = true
    const kills = await killing
    const seconds = (performance.now() - began_at) / 1000
    console.log(
      `${server.verdicts.length} calls in ${seconds.toFixed(1)} s, ${issuer.issued.length} tokens, ${kills} kills`,
    )
    assert.ok(server.verdicts.length >= tasks * callsOfTask)
    assert.deepEqual(
      server.verdicts.filter((verdict) => verdict !== 'good'),
      [],
    )
    assert.ok(issuer.issued.length <= Math.floor(seconds / (lifetime - lifetime / 5)) + 2 + kills)
  })

  it('killed processes never send a refresh token twice, and a person reconnects a credential that was lost', async (t) => {
    const issuer = await TokenIssuer.start({ lifetime })
    t.after(() => issuer.stop())
    // The answer takes a while, so that kills hit renewals.
    issuer.holdAnswer = async () => {
      await delay(300)
      return 'send'
    }
    const server = await startSlowServer(t, issuer)
    const { id, name } = await world.credential(issuer, { grant: 'authorization_code', ...issuerClients.confidential })
    await connect(issuer, id)
    const running = await startAll(t)
    const made = await startTasks(server, name)
    let isOver = false
    let reconnections = 0
    const killing = killUntil(running, () => isOver, issuer)
    await eventually(async () => {
      const { body } = await world.call('GET', `/credentials/${id}`)
      if (body.status === 'needs_authorization') {
        assert.equal(body.error.code, 'outcome_unknown')
        await connect(issuer, id)
        reconnections += 1
      }
      return (await Promise.all(made.map(statusOf))).every(({ status }) => status === 'completed')
    }, 400_000)
    isOver = true
    const kills = await killing
    const spent = issuer.tokenRequests.flatMap(({ refresh_token }) => refresh_token ?? [])
    console.log(`${spent.length} renewals, ${kills} kills, ${reconnections} reconnections`)
    assert.equal(new Set(spent).size, spent.length, 'one was sent twice')
    assert.deepEqual(
      server.verdicts.filter((verdict) => verdict === 'expired'),
      [],
    )
  })
})
