import { eventually } from '../../server/test/harness.ts'
import { newId } from '../../server/src/platform/ids.ts'
import type { TestConsole } from '../browser/console.ts'
import { makeDemoResources, type DemoResources, type DemoServers } from './demo-resources.ts'

/** What the pictures are of. */
export interface Demo extends DemoResources {
  project: string
  /** A project without anything in it. */
  empty: string
  agents: Record<string, string>
  tasks: { completed: string; failed: string; waiting: string; running: string; delegated: string; other: string }
}

const prompts = {
  support: `You answer questions of our customers.

- Be brief and kind.
- Look an order up before you say anything about it.
- Ask a person before you refund more than 50 dollars.

Never promise a date that the carrier has not confirmed.`,
}

const refund = [
  { text: 'I look the order up first.' },
  {
    tool_calls: [
      {
        name: 'run_javascript',
        arguments: { code: "const order = { id: 'A-1042', total: 48.5, state: 'delivered' }\norder" },
      },
    ],
  },
  { tool_calls: [{ name: 'current_time', arguments: {} }] },
  {
    text: 'Order **A-1042** was delivered, and the claim is within 30 days, so it qualifies for a refund:\n\n| Item | Amount |\n|---|---|\n| Kettle | $39.00 |\n| Shipping | $9.50 |\n\nThe customer gets **$48.50** back within three days.\n\n```json\n{ "order": "A-1042", "refund": 48.5 }\n```',
  },
]

/** Fills a service with a project as a team would have it after a month. */
export async function makeDemo(cadre: TestConsole, servers: DemoServers): Promise<Demo> {
  const { send, sql } = cadre
  const call = async (method: string, path: string, body?: object): Promise<any> => {
    const answer = await send(method, path, body ? { body } : {})
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const project = String((await call('POST', '/api/v1/projects', { name: 'storefront' })).id)
  const base = `/api/v1/projects/${project}`
  const empty = String((await call('POST', '/api/v1/projects', { name: 'research' })).id)
  const agents: Record<string, string> = {}
  const agent = async (name: string, description: string, script: object[], config: object = {}): Promise<void> => {
    const { id } = await call('POST', `${base}/agents`, {
      name,
      description,
      config: { model: 'builtin/script', system_prompt: JSON.stringify(script), ...config },
    })
    agents[name] = id
  }
  await agent('support-desk', 'Answers customers and looks orders up', refund, {
    tools: ['run_javascript', 'current_time'],
  })
  await agent(
    'refunds',
    'Pays money back, and asks a person first',
    [
      { text: 'I need your approval.' },
      { tool_calls: [{ name: 'run_javascript', arguments: { code: 'refund(48.5)' } }] },
    ],
    { tools: ['run_javascript'], tool_policies: { run_javascript: 'ask' } },
  )
  await agent('nightly-report', 'Sums up the day', [{ delay_ms: 600_000 }, { text: 'Done.' }])
  await agent('invoice-reader', 'Reads invoices', [{ text: 'x' }], { model: 'openai/gpt-5-mini' })
  await agent('translator', 'Translates product texts', [{ text: 'Der Wasserkocher ist wieder lieferbar.' }])
  await agent(
    'release-notes',
    'Writes release notes, and has them translated',
    [
      {
        tool_calls: [{ name: 'delegate_translator', arguments: { input: 'The kettle is back in stock.' } }],
      },
      { text: 'Both texts are ready: *The kettle is back in stock.* and *Der Wasserkocher ist wieder lieferbar.*' },
    ],
    { delegates: [{ agent_id: agents['translator'] }] },
  )
  const run = async (name: string, input: string): Promise<string> =>
    (await call('POST', `${base}/agents/${agents[name]}/tasks`, { input })).id
  const reached = (id: string, states: string[]): Promise<any> =>
    eventually(async () => {
      const task = await call('GET', `${base}/tasks/${id}`)
      if (task.finished_at !== null && !states.includes(task.status)) throw new Error(JSON.stringify(task.error))
      return states.includes(task.status) && task
    }, 120_000)
  const first = await run('translator', 'The kettle is back in stock.')
  await reached(first, ['completed'])
  await age(sql, project, agents)
  const asked = 'The kettle from order A-1042 arrived broken. Can I have my money back?'
  const tasks = {
    completed: await run('support-desk', asked),
    other: await run('support-desk', 'Where is my order A-1043?'),
    failed: await run('invoice-reader', 'Read the invoice INV-2201 and tell me what is due.'),
    waiting: await run('refunds', 'Refund order A-1042.'),
    running: await run('nightly-report', 'Sum up yesterday.'),
    delegated: await run('release-notes', 'Write the notes for the kettle, in English and German.'),
  }
  await Promise.all([
    reached(tasks.completed, ['completed']),
    reached(tasks.other, ['completed']),
    reached(tasks.failed, ['failed']),
    reached(tasks.waiting, ['waiting']),
    reached(tasks.running, ['running']),
    reached(tasks.delegated, ['completed', 'failed']),
  ])
  // The instructions as people write them: a script is not for the eye.
  for (const system_prompt of [
    'You answer questions of our customers.\n\n- Be brief.\n- Look an order up before you say anything about it.',
    prompts.support,
  ])
    await call('PUT', `${base}/agents/${agents['support-desk']}`, { config: { system_prompt } })
  await call('POST', `${base}/budgets`, { scope: 'project', max_cost_usd: 9, period: 'day' })
  await call('POST', `${base}/budgets`, { scope: 'project', max_cost_usd: 220, period: 'month' })
  // What the hours of usage above have cost.
  await sql`
    update budget b set spent_cost_usd = (
      select coalesce(sum(cost_usd), 0) from usage_hour u where u.project_id = b.project_id and u.hour >= date_trunc(b.period, now(), 'UTC'))
    where project_id = ${Number(project)}`
  await call('POST', '/api/v1/auth/api-keys', { name: 'checkout', scopes: ['tasks:write', 'agents:read'] })
  const resources = await makeDemoResources(cadre, call, project, agents, servers)
  return { project, empty, agents, tasks, ...resources }
}

const questions = [
  'Where is my order?',
  'Can I change the address of order A-1077?',
  'The lamp flickers. What can I do?',
  'Do you ship to Norway?',
]

/** Tasks and usage of the last month, as the service keeps them. */
async function age(sql: TestConsole['sql'], project: string, agents: Record<string, string>): Promise<void> {
  const project_id = Number(project)
  const shares = {
    'support-desk': [0.55, 0.03],
    refunds: [0.2, 0.05],
    translator: [0.2, 0.01],
    'invoice-reader': [0.05, 0.7],
  }
  const [like] = await sql<{
    usage: object
  }>`select usage from task where project_id = ${project_id} and status = 'completed' limit 1`
  const usage = JSON.stringify({ ...like!.usage, input_tokens: 900, output_tokens: 120, cost_usd: 0.004 })
  let seed = 7
  const chance = (): number => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647
  const hours = 24 * 9
  type Row = { agent: string; status: string; ended: number; took: number; n: number; error: object }
  const rows: Row[] = []
  for (const [name, [share = 0, failing = 0]] of Object.entries(shares)) {
    const error =
      name === 'invoice-reader'
        ? { code: 'provider_not_configured', message: 'The provider openai has no key.' }
        : { code: 'provider_rate_limited', message: 'The provider refused the call: too many requests.' }
    for (let hour = hours; hour > 0; hour--) {
      const wave = 1 + Math.sin((hour / 24) * 2 * Math.PI)
      const count = Math.round(28 * share * wave * (0.7 + 0.6 * chance()))
      for (let n = 0; n < count; n++) {
        const luck = chance()
        const bad = name === 'support-desk' && hour > 5 && hour < 9 ? 0.3 : failing
        rows.push({
          status: luck < bad ? 'failed' : luck < bad + 0.02 ? 'canceled' : 'completed',
          ended: (hour + chance()) * 3600,
          took: 1.5 + 14 * chance() ** 3,
          n: rows.length,
          agent: agents[name]!,
          error,
        })
      }
    }
  }
  // Identifiers rise with time, as those of the service do.
  const newestFirst = rows.toSorted((a, b) => b.ended - a.ended).map((row) => ({ ...row, id: newId('task') }))
  await sql`
      insert into task (id, project_id, agent_id, agent_version, status, input, max_attempts, usage, created_by, created_at, started_at, finished_at, error)
      select id, ${project_id}, agent, 1, status, to_jsonb((${questions}::text[])[1 + n % 4]), 1, ${usage}::jsonb, 'user_x',
        now() - make_interval(secs => ended + took), now() - make_interval(secs => ended + took), now() - make_interval(secs => ended),
        case status when 'failed' then error end
      from jsonb_to_recordset(${JSON.stringify(newestFirst)}::jsonb) as t(id text, agent text, status text, ended float8, took float8, n int, error jsonb)`
  const models = { 'openai/gpt-5-mini': 0.055, 'anthropic/claude-sonnet-4-5': 0.08, 'google/gemini-2.5-flash': 0.015 }
  for (const [model, cost] of Object.entries(models))
    await sql`
      insert into usage_hour (org_id, project_id, agent_id, credential_id, model, tool, hour, calls, input_tokens, output_tokens, cost_usd)
      select (select org_id from project where id = ${project_id}), ${project_id}, a, 'key_1', ${model}, '', date_trunc('hour', now() - make_interval(hours => n), 'UTC'),
        (10 + 6 * sin(n / 3.8))::int, (15000 + 9000 * sin(n / 3.8))::int, 2000, ${cost}::numeric * (0.8 + 0.4 * sin(n / 3.8) + 0.3 * sin(n / 40.0))::numeric
      from generate_series(0, 719) n, unnest(${[agents['support-desk']!, agents['translator']!]}::text[]) a
      on conflict do nothing`
  for (let more = true; more;)
    [{ more } = { more: false }] = await sql<{ more: boolean }>`select roll_up_tasks() as more`
}
