import assert from 'node:assert/strict'
import type { CredentialKind, Operation } from '#contract/core/operation.ts'
import { resourceTypes } from '#contract/core/resource-types.ts'
import { operations } from '#contract/operations.ts'
import { extendToolCall } from '#contract/tools/tool-calls.ts'
import { beginWorkStep } from '#contract/tasks/work.ts'
import { eraseTasks } from '#contract/tasks/tasks.ts'
import { leaseHash } from '../../src/engine/dispatch/lease-tokens.ts'
import { newId } from '../../src/platform/ids.ts'
import { createPasswords } from '../../src/platform/crypto/passwords.ts'
import { insertInvitation } from '../../src/resources/members/invitations.queries.ts'
import { makeKey, makePerson, makeSession, makeToken, type Credential, type Person } from '../actors.ts'
import type { TestService } from '../harness.ts'

/** A request of an operation, with its complete path and a valid body. */
export interface Sample {
  path: string
  body?: unknown
}

/** Well-formed identifiers of resources that do not exist. */
export const missing: Record<string, string> = {
  ...Object.fromEntries(
    Object.entries(resourceTypes).map(([type, { prefix }]) => [`${type}_id`, `${prefix}_${'0'.repeat(26)}`]),
  ),
  project_id: 'proj_999999999',
  agent_id: 'agent_00000000000000000000000000',
  task_id: 'task_00000000000000000000000000',
  thread_id: 'thread_00000000000000000000000000',
  approval_id: 'appr_00000000000000000000000000',
  key_id: 'key_00000000000000000000000000',
  version: '999999999',
  schedule_id: 'sched_00000000000000000000000000',
  provider: 'nobody',
  client_id: 'nobody',
  user_id: 'user_00000000000000000000000000',
  invitation_id: 'inv_00000000000000000000000000',
}

const password = 'seven grey herons on a roof'

/** What the operations of a test work on: an organization with a project, an agent and tasks. */
export class Samples {
  readonly test: TestService
  /** The owner of the organization. */
  readonly owner: Person
  readonly key: string
  readonly project_id: number
  readonly agent_id: string
  /** A task that has ended, so that its stream ends too. */
  readonly task_id: string
  #count = 0
  /** The token of the newest lease. */
  #lease: string | undefined
  readonly #made: { tool?: string; credential?: string; issued?: string; webhook?: string } = {}
  /** Ids of resources that samples share, by the parameter that names them. */
  readonly #created_ids = new Map<string, string>()
  readonly #prefix: string
  readonly #password_hash: string

  private constructor(
    test: TestService,
    owner: Person,
    key: string,
    made: { project_id: number; agent_id: string; task_id: string; password_hash: string },
  ) {
    this.test = test
    this.owner = owner
    this.key = key
    this.project_id = made.project_id
    this.agent_id = made.agent_id
    this.task_id = made.task_id
    this.#password_hash = made.password_hash
    this.#prefix = `s${made.project_id}`
  }

  /** In a separate organization. */
  static async make(test: TestService): Promise<Samples> {
    const owner = await makePerson(test)
    const { key } = await makeKey(test, owner, ['admin'])
    const post = async (path: string, body: unknown) => {
      const reply = await test.send('POST', path, { key, body })
      assert.ok(reply.status < 300, JSON.stringify(reply.body))
      return reply.body
    }
    const { id: project_id } = await post('/api/v1/projects', { name: `samples-${owner.user_id.slice(-8)}` })
    const agents = `/api/v1/projects/${project_id}/agents`
    const { id: agent_id } = await post(agents, { name: 'sample' })
    await post(`${agents}/${agent_id}/pause`, undefined)
    const { id: task_id } = await post(`${agents}/${agent_id}/tasks`, { input: 'Say hello.' })
    await post(`/api/v1/projects/${project_id}/tasks/${task_id}/cancel`, undefined)
    const password_hash = await createPasswords().hash(password)
    return new Samples(test, owner, key, { project_id, agent_id, task_id, password_hash })
  }

  /** A request that succeeds for `person`, on resources created for it. */
  async of(operation: Operation, person: Person = this.owner): Promise<Sample> {
    const { id } = operation
    const params: Record<string, string> = {
      project_id: `proj_${this.project_id}`,
      agent_id: this.agent_id,
      task_id: this.task_id,
      version: '0',
      provider: 'sample',
      worker_id: this.test.service.context.engine.worker_id,
    }
    if (id === 'deleteProject') params.project_id = String(await this.#makeProject())
    if (id === 'deleteAgent') params.agent_id = await this.#makeAgent()
    if (['cancelTask', 'sendTaskMessage', 'updateTaskBudget'].includes(id)) params.task_id = await this.#makeTask()
    if (id === 'deleteTask' || id === 'eraseTasks') params.task_id = await this.#makeEndedTask()
    if ('approval_id' in (operation.params ?? {})) params.approval_id = await this.#makeApproval()
    if ('tool_call_id' in (operation.params ?? {})) params.tool_call_id = await this.#makeToolCall()
    if ('step_id' in (operation.params ?? {})) params.step_id = await this.#beginStep()
    if (id === 'claimToolCall') await this.#makeToolCall('pending')
    if (id === 'claimWork') await this.#offerWork('support')
    if ('schedule_id' in (operation.params ?? {})) params.schedule_id = await this.#makeSchedule()
    if ('thread_id' in (operation.params ?? {})) params.thread_id = await this.#makeThread()
    if ('budget_id' in (operation.params ?? {})) params.budget_id = await this.#makeBudget()
    if ('key_id' in (operation.params ?? {}))
      params.key_id = (await makeKey(this.test, person, [id === 'rotateApiKey' ? 'api_keys:write' : 'read'])).id
    if ('tool_id' in (operation.params ?? {})) params.tool_id = await this.#tool(id === 'deleteTool')
    if ('credential_id' in (operation.params ?? {}))
      params.credential_id =
        id === 'authorizeCredential'
          ? await this.#issuedCredential()
          : await this.#credential(id === 'deleteCredential')
    if ('file_id' in (operation.params ?? {})) params.file_id = await this.#makeFile()
    if ('webhook_id' in (operation.params ?? {})) params.webhook_id = await this.#webhook(id === 'deleteWebhook')
    if ('model_provider_id' in (operation.params ?? {})) params.model_provider_id = await this.#makeModelProvider()
    if ('trigger_id' in (operation.params ?? {})) params.trigger_id = await this.#makeTrigger()
    if ('delivery_id' in (operation.params ?? {}))
      params.delivery_id = params.trigger_id
        ? await this.#makeTriggerDelivery(params.trigger_id)
        : await this.#makeDelivery(params.webhook_id!)
    if ('identity_id' in (operation.params ?? {})) params.identity_id = await this.#makeIdentity(person)
    if ('session_id' in (operation.params ?? {})) params.session_id = (await makeSession(this.test, person)).id
    if ('client_id' in (operation.params ?? {})) params.client_id = await this.#makeClient()
    if ('user_id' in (operation.params ?? {}))
      params.user_id = (await makePerson(this.test, 'member', this.owner.org_id)).user_id
    if ('invitation_id' in (operation.params ?? {})) params.invitation_id = (await this.#makeInvitation(this.owner)).id
    for (const name of Object.keys(operation.params ?? {}))
      if (!Object.hasOwn(params, name)) {
        const id = await this.#created(name, operation, params)
        if (id !== undefined) params[name] = id
      }
    const givesTask = [
      'createTask',
      'createTaskBatch',
      'retryTask',
      'triggerSchedule',
      'testTrigger',
      'replayTriggerDelivery',
    ]
    if (operation.bucket === 'agents.action' || givesTask.includes(id)) {
      await this.test.sql`update agent set status = 'paused', settles_to = null where id = ${this.agent_id}`
    }
    if (id === 'createBudget') await this.test.sql`delete from budget where subject = ${this.agent_id}`
    if (id === 'changePassword' || id === 'linkIdentity')
      await this.test.sql`update app_user set password_hash = ${this.#password_hash} where id = ${person.user_id}`
    const query = id === 'previewSchedule' ? '?cron=0%208%20*%20*%20*' : ''
    const sample = { path: `${fill(operation.path, params)}${query}`, ...this.#body(operation) }
    if (id === 'acceptInvitation')
      sample.body = { token: (await this.#makeInvitation(await makePerson(this.test))).token }
    if (id === 'leaveOrganization') sample.body = { organization_id: person.org_id }
    // The owner of the samples is the last one, and stays; other users get another organization.
    if (id === 'leaveOrganization' && person !== this.owner) {
      await makePerson(this.test, 'owner', person.org_id)
      const { org_id } = await makePerson(this.test)
      await this.test.sql`insert into member (org_id, user_id, role) values (${org_id}, ${person.user_id}, 'viewer')`
    }
    return sample
  }

  /**
   * The same request for something that does not exist: `which` names the parameter, the last one where nothing is
   * said.
   */
  async missing(
    operation: Operation,
    sample: Sample,
    which = Object.keys(operation.params ?? {}).at(-1),
  ): Promise<Sample> {
    if (which === undefined) return { ...sample, body: { ...(sample.body as object), project_id: 999_999_999 } }
    const at = operation.path.split('/').indexOf(`{${which}}`)
    return {
      ...sample,
      path: sample.path
        .split('/')
        .map((part, i) => (i === at ? missing[which] : part))
        .join('/'),
    }
  }

  /** A credential of a person's of the given kind, with these scopes; cookies have what their role allows. */
  async credential(
    kind: CredentialKind,
    person: Person = this.owner,
    scopes: Parameters<typeof makeKey>[2] = ['admin'],
  ): Promise<Credential> {
    if (kind === 'lease') return { token: await this.#makeLease() }
    if (kind === 'api_key') return { key: (await makeKey(this.test, person, scopes)).key }
    if (kind === 'token') return { token: (await makeToken(this.test, person, scopes)).token }
    return { cookie: (await makeSession(this.test, person)).cookie }
  }

  #body(operation: Operation): { body?: unknown } {
    if (operation.upload) return { body: { sample: true } }
    if (!operation.body) return {}
    const name = `${this.#prefix}-${++this.#count}`
    const changes: Record<string, object> = {
      updateProject: { name: `renamed-${this.#prefix}` },
      updateAgent: { name: 'sample' },
      rollbackAgent: { version: 0 },
      createSchedule: { agent_id: this.agent_id },
      createTrigger: { agent_id: this.agent_id },
      testTrigger: { preview: false },
      createThread: { agent_id: this.agent_id },
      // Refused before any lookup, so that no test waits for the network.
      tryTool: {
        parameters: { type: 'object', required: ['never'] },
        http: { method: 'GET', url: 'https://api.example.com/' },
      },
      createCredential: { name: name.replaceAll('-', '_') },
      launchAgent: { name: 'sample', project_id: this.project_id },
      recoverDeliveries: { since: new Date().toISOString() },
      createBudget: { scope: 'agent', subject: this.agent_id },
      // Scopes that every credential with a scope may give.
      createApiKey: { scopes: ['api_keys:write'] },
      updateApiKey: { scopes: ['api_keys:write'] },
      linkIdentity: { current_password: password },
      changePassword: { current_password: password, new_password: 'eight white storks on a lake' },
    }
    const example = operation.body_example as object
    // Names may be unique.
    const isNamed = operation.responses[0]?.status === 201 && 'name' in example
    return { body: { ...example, ...(isNamed ? { name } : {}), ...changes[operation.id] } }
  }

  async #makeProject(): Promise<number> {
    const { body } = await this.test.send('POST', '/api/v1/projects', {
      key: this.key,
      body: { name: `${this.#prefix}-${++this.#count}` },
    })
    return body.id
  }

  async #makeAgent(): Promise<string> {
    const path = `/api/v1/projects/${this.project_id}/agents`
    const { body } = await this.test.send('POST', path, {
      key: this.key,
      body: { name: `${this.#prefix}-${++this.#count}` },
    })
    return body.id
  }

  /** A task that waits in the queue, because its agent is paused. */
  async #makeTask(): Promise<string> {
    await this.test.sql`update agent set status = 'paused', settles_to = null where id = ${this.agent_id}`
    const path = `/api/v1/projects/${this.project_id}/agents/${this.agent_id}/tasks`
    const { body } = await this.test.send('POST', path, { key: this.key, body: { input: 'Wait.' } })
    return body.id
  }

  /** A task that has ended, with the metadata by which the example erases tasks. */
  async #makeEndedTask(): Promise<string> {
    const id = await this.#makeTask()
    await this.test
      .sql`update task set metadata = ${JSON.stringify(eraseTasks.body_example.metadata)}::jsonb where id = ${id}`
    await this.test.send('POST', `/api/v1/projects/${this.project_id}/tasks/${id}/cancel`, { key: this.key })
    return id
  }

  /** A schedule that is not due during a test. */
  async #makeSchedule(): Promise<string> {
    const { body } = await this.test.send('POST', `/api/v1/projects/${this.project_id}/schedules`, {
      key: this.key,
      body: { agent_id: this.agent_id, name: 'sample', cron: '0 0 29 2 *', input: 'Leap.' },
    })
    return body.id
  }

  /** A trigger of an agent that has no other one: a project may have only so many. */
  async #makeTrigger(): Promise<string> {
    await this.test.sql`delete from trigger where agent_id = ${this.agent_id}`
    const body = { agent_id: this.agent_id, name: 'sample', source: 'bearer' }
    const path = `/api/v1/projects/${this.project_id}/triggers`
    const reply = await this.test.send('POST', path, { key: this.key, body })
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    return reply.body.id
  }

  /** A provider at an address that is refused before any lookup, so that no test waits for the network. */
  async #makeModelProvider(): Promise<string> {
    await this.test.sql`delete from model_provider where org_id = ${this.owner.org_id}`
    const { body } = await this.test.send('POST', '/api/v1/model-providers', {
      key: this.key,
      body: { name: 'sample', base_url: 'https://models.example.com/v1', api_key: 'sk-of-a-sample' },
    })
    await this.test.sql`update model_provider set base_url = 'http://127.0.0.1:9/v1' where id = ${body.id}`
    return body.id
  }

  async #makeTriggerDelivery(trigger_id: string): Promise<string> {
    const id = newId('tdlv')
    await this.test.sql`
      insert into trigger_delivery (id, trigger_id, project_id, status, reason, headers, body)
      values (${id}, ${trigger_id}, ${this.project_id}, 'filtered', 'paused', '{"content-type": "application/json"}', '{"a": 1}')`
    return id
  }

  /** A pending approval of a task that waits in the queue. */
  async #makeApproval(): Promise<string> {
    const task_id = await this.#makeTask()
    const [step_id, id] = [newId('step'), newId('appr')]
    await this.test.sql`
      insert into task_step (task_id, index, id, agent_id, type, status, attempt, name, input)
      values (${task_id}, 0, ${step_id}, ${this.agent_id}, 'approval', 'started', 1, 'pay', '{"tool_call_id": "call_1", "arguments": {}}')`
    await this.test.sql`
      insert into approval (id, project_id, agent_id, task_id, step_id, step_index, kind, tool, arguments, call_hash)
      values (${id}, ${this.project_id}, ${this.agent_id}, ${task_id}, ${step_id}, 0, 'tool_call', 'pay', '{}', 'none')`
    return id
  }

  /** A tool call, of a task that waits in the queue; claimed with the token of the examples where nothing is said. */
  async #makeToolCall(status: 'pending' | 'claimed' = 'claimed'): Promise<string> {
    const task_id = await this.#makeTask()
    const step_id = newId('step')
    const id = `call_${step_id.slice('step_'.length)}`
    const { lease } = extendToolCall.body_example
    await this.test.sql`
      insert into task_step (task_id, index, id, agent_id, type, status, attempt, name, input)
      values (${task_id}, 0, ${step_id}, ${this.agent_id}, 'wait', 'started', 1, 'pay', '{"tool_call_id": "call_1", "arguments": {}, "is_callers": true}')`
    await this.test.sql`
      insert into tool_call (id, task_id, step_index, project_id, agent_id, name, status, attempt, lease_hash, lease_seconds, lease_until)
      values (${id}, ${task_id}, 0, ${this.project_id}, ${this.agent_id}, 'refund', ${status}, 1, ${leaseHash(lease)}, 60, now() + interval '1 hour')`
    return id
  }

  /** A task that waits for a worker of a queue. */
  async #offerWork(queue: string): Promise<void> {
    const path = `/api/v1/projects/${this.project_id}/agents`
    const name = `${this.#prefix}-${++this.#count}`
    const config = { model: 'builtin/echo', runtime: { kind: 'remote', queue } }
    const agent = await this.test.send('POST', path, { key: this.key, body: { name, config } })
    await this.test.send('POST', `${path}/${agent.body.id}/tasks`, { key: this.key, body: { input: 'Work.' } })
  }

  /** The token of a worker's lease on a task that it has just claimed. */
  async #makeLease(): Promise<string> {
    const path = `/api/v1/projects/${this.project_id}`
    const queue = `${this.#prefix}-${++this.#count}`
    const { key } = await makeKey(this.test, this.owner, ['admin'])
    await this.#offerWork(queue)
    const claim = await this.test.send('POST', `${path}/work/claim`, { key, body: { queues: [queue], wait: 20 } })
    assert.equal(claim.status, 200, JSON.stringify(claim.body))
    this.#lease = claim.body.work.lease.token
    return claim.body.work.lease.token
  }

  /** A step under the lease that was made last, where there is one. */
  async #beginStep(): Promise<string> {
    if (this.#lease === undefined) return missing['step_id']!
    const { body } = await this.test.send('POST', `/api/v1/projects/${this.project_id}/work/steps`, {
      token: this.#lease,
      body: beginWorkStep.body_example,
    })
    return body.step_id ?? missing['step_id']
  }

  /** A budget of an agent that has none yet. */
  async #makeBudget(): Promise<string> {
    const body = { scope: 'agent', subject: await this.#makeAgent(), max_tokens: 1000 }
    const reply = await this.test.send('POST', `/api/v1/projects/${this.project_id}/budgets`, { key: this.key, body })
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    return reply.body.id
  }

  /** A tool or a credential for all samples; a project may have only so many. `own`: one that may be deleted. */
  async #tool(own: boolean): Promise<string> {
    if (!own && this.#made.tool !== undefined) return this.#made.tool
    const http = { method: 'GET', url: 'https://api.example.com/' }
    const body = { name: `${this.#prefix}-${++this.#count}`, description: 'A sample.', kind: 'http', http }
    const reply = await this.test.send('POST', `/api/v1/projects/${this.project_id}/tools`, { key: this.key, body })
    if (!own) this.#made.tool = reply.body.id
    return reply.body.id
  }

  async #credential(own: boolean): Promise<string> {
    if (!own && this.#made.credential !== undefined) return this.#made.credential
    const body = { name: `${this.#prefix}_${++this.#count}`, value: 'sample', allowed_hosts: ['api.example.com'] }
    const path = `/api/v1/projects/${this.project_id}/credentials`
    const reply = await this.test.send('POST', path, { key: this.key, body })
    if (!own) this.#made.credential = reply.body.id
    return reply.body.id
  }

  /** A credential that a person connects with an issuer. */
  async #issuedCredential(): Promise<string> {
    if (this.#made.issued !== undefined) return this.#made.issued
    const body = {
      name: `${this.#prefix}_${++this.#count}`,
      type: 'oauth2',
      grant: 'authorization_code',
      authorization_endpoint: 'https://id.example.com/authorize',
      token_endpoint: 'https://id.example.com/token',
      client_id: 'sample',
      allowed_hosts: ['api.example.com'],
    }
    const path = `/api/v1/projects/${this.project_id}/credentials`
    const reply = await this.test.send('POST', path, { key: this.key, body })
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    return (this.#made.issued = reply.body.id as string)
  }

  /**
   * The resource that a parameter names, made by the example of the operation that creates it. One is enough for all samples,
   * except those that delete it. Undefined where no operation creates one.
   */
  async #created(name: string, { path, method }: Operation, params: Record<string, string>) {
    const kept = this.#created_ids.get(name)
    if (kept !== undefined && method !== 'DELETE') return kept
    const collection = path.slice(0, path.indexOf(`/{${name}}`))
    const creation = operations.find((each) => each.method === 'POST' && each.path === collection)
    if (creation?.responses[0]?.status !== 201) return undefined
    const reply = await this.test.send('POST', fill(collection, params), { key: this.key, ...this.#body(creation) })
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    if (method !== 'DELETE') this.#created_ids.set(name, reply.body.id)
    return reply.body.id as string
  }

  async #makeFile(): Promise<string> {
    const path = `/api/v1/projects/${this.project_id}/files`
    const reply = await this.test.send('POST', path, { key: this.key, body: { sample: true } })
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    return reply.body.id
  }

  async #webhook(own: boolean): Promise<string> {
    if (!own && this.#made.webhook !== undefined) {
      await this.test.sql`update webhook set status = 'active' where id = ${this.#made.webhook}`
      return this.#made.webhook
    }
    const body = { url: 'https://hooks.example.com/', events: ['project.deleted'], secret: 'sample' }
    const reply = await this.test.send('POST', '/api/v1/webhooks', { key: this.key, body })
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    if (!own) this.#made.webhook = reply.body.id
    return reply.body.id
  }

  /** A failed delivery with its event. */
  async #makeDelivery(webhook_id: string): Promise<string> {
    const [id, event_id] = [newId('dlv'), newId('evt')]
    const { org_id } = this.owner
    await this.test.sql`
      insert into event (id, org_id, type, data, matched_at) values (${event_id}, ${org_id}, 'webhook.test', '{}', now())`
    await this.test.sql`
      insert into delivery (id, webhook_id, org_id, event_id, event, status, failure, finished_at)
      values (${id}, ${webhook_id}, ${org_id}, ${event_id}, 'webhook.test', 'failed', 'attempts_exhausted', now())`
    return id
  }

  async #makeThread(): Promise<string> {
    const path = `/api/v1/projects/${this.project_id}/threads`
    const { body } = await this.test.send('POST', path, { key: this.key, body: { agent_id: this.agent_id } })
    return body.id
  }

  /** A pending invitation into the organization of an owner. */
  async #makeInvitation({ org_id, user_id }: Person): Promise<{ id: string; token: string }> {
    const invitation = { org_id, created_by: user_id, role: 'viewer', email: null, expires_in_seconds: 3600 } as const
    const made = await insertInvitation(this.test.sql, invitation)
    if (typeof made === 'string') throw new Error(`an owner may invite: ${made}`)
    return { id: made.row.id, token: made.token }
  }

  /** An account of a person's at an identity provider, beside another one. */
  async #makeIdentity({ user_id }: Person): Promise<string> {
    const ids = [newId('ident'), newId('ident')]
    // The issuer of the provider that the service has, if it has one: what else signs in must be able to.
    const [provider] = this.test.service.context.config.sso
    for (const id of ids)
      await this.test.sql`
        insert into identity (id, issuer, subject, user_id)
        values (${id}, ${provider?.issuer ?? 'https://id.example.com'}, ${id}, ${user_id})`
    return ids[0]!
  }

  async #makeClient(): Promise<string> {
    const body = { name: 'An app', redirect_uris: ['https://app.example.com/cb'], scopes: ['read'] }
    const reply = await this.test.send('POST', '/api/v1/auth/oauth-clients', { key: this.key, body })
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    return reply.body.client_id
  }
}

function fill(path: string, params: Record<string, string>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name]
    if (value === undefined) throw new Error(`no sample is known for {${name}}`)
    return value
  })
}
