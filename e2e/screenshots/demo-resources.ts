import { createServer, type RequestListener } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { startMcpServer, tool } from '../../server/test/fakes/mcp-server.ts'
import { eventually } from '../../server/test/harness.ts'
import type { TestConsole } from '../browser/console.ts'

/** What the agents of the demonstration use besides their models, by the ids of the pages that show it. */
export interface DemoResources {
  tools: Record<'order_lookup' | 'warehouse' | 'open_ticket', string>
  credentials: Record<'SHOP_API_KEY' | 'CALENDAR', string>
  schedule: string
  thread: string
  trigger: string
  webhook: string
  delivery: string
}

type Call = (method: string, path: string, body?: object) => Promise<any>

/** The servers that the demonstration talks to. They end with `close`. */
export interface DemoServers {
  /** Answers the orders of the shop. */
  shop: string
  /** Takes events with 204, and refuses those to `/down`. */
  receiver: string
  /** An MCP server, whose tools changed once it was connected if `change` was called. */
  mcp: { url: string; change(): void }
  close(): Promise<void>
}

export async function startDemoServers(): Promise<DemoServers> {
  const ends: (() => Promise<void>)[] = []
  const start = async (answer: RequestListener): Promise<string> => {
    const server = createServer(answer).listen(0, '127.0.0.1')
    await once(server, 'listening')
    ends.push(async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    })
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  const shop = await start((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ order: 'A-1042', state: 'delivered', total: 48.5 }))
  })
  const receiver = await start((request, response) =>
    response.writeHead(request.url === '/down' ? 503 : 204).end(request.url === '/down' ? 'maintenance' : ''),
  )
  const after = (end: () => Promise<void>): void => void ends.push(end)
  const mcp = await startMcpServer({ after } as unknown as TestContext, {
    tools: [tool('stock', 'Says how many of an article are left.'), tool('reserve', 'Reserves an article.')],
  })
  return {
    shop,
    receiver,
    mcp: {
      url: mcp.url,
      change: () =>
        (mcp.tools = [
          tool('stock', 'Says how many of an article are left, and where.'),
          tool('reserve'),
          tool('move'),
        ]),
    },
    close: async () => void (await Promise.all(ends.map((end) => end()))),
  }
}

/** Fills the project with one of every resource, in the states that its page has something to say about. */
export async function makeDemoResources(
  { url, key }: TestConsole,
  call: Call,
  project: string,
  agents: Record<string, string>,
  servers: DemoServers,
): Promise<DemoResources> {
  const base = `/api/v1/projects/${project}`
  const id = async (path: string, body: object): Promise<string> => (await call('POST', path, body)).id
  const until = (path: string, holds: (body: any) => boolean): Promise<any> =>
    eventually(async () => {
      const body = await call('GET', path)
      return holds(body) && body
    }, 120_000)

  const credentials = {
    SHOP_API_KEY: await id(`${base}/credentials`, {
      name: 'SHOP_API_KEY',
      value: 'a key of the shop',
      allowed_hosts: ['127.0.0.1'],
    }),
    CALENDAR: await id(`${base}/credentials`, {
      name: 'CALENDAR',
      type: 'oauth2',
      grant: 'authorization_code',
      authorization_endpoint: 'https://id.example.com/authorize',
      token_endpoint: 'https://id.example.com/token',
      client_id: 'storefront',
      client_secret: 'a secret of the client',
      allowed_hosts: ['calendar.example.com'],
    }),
  }
  const tools = {
    order_lookup: await id(`${base}/tools`, {
      name: 'order_lookup',
      description: 'Finds an order by its number.',
      kind: 'http',
      parameters: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
      http: {
        method: 'GET',
        url: `${servers.shop}/orders/{order}`,
        headers: { authorization: 'Bearer ${credentials.SHOP_API_KEY}' },
      },
    }),
    warehouse: await id(`${base}/tools`, {
      name: 'warehouse',
      description: 'Stock and reservations of the warehouse.',
      kind: 'mcp',
      mcp: { url: servers.mcp.url },
    }),
    open_ticket: await id(`${base}/tools`, {
      name: 'open_ticket',
      description: 'Opens a ticket in the help desk.',
      kind: 'client',
      parameters: { type: 'object', properties: { subject: { type: 'string' } } },
    }),
  }
  const agent = (name: string, script: object[], used: string[]): Promise<string> =>
    id(`${base}/agents`, {
      name,
      description: 'Works with the tools of the shop',
      config: { model: 'builtin/script', system_prompt: JSON.stringify(script), tools: used },
    })
  agents['order-desk'] = await agent(
    'order-desk',
    [
      { tool_calls: [{ name: 'order_lookup', arguments: { order: 'A-1042' } }] },
      { text: 'Order **A-1042** was delivered on Monday.' },
    ],
    ['order_lookup', 'warehouse'],
  )
  agents['help-desk'] = await agent(
    'help-desk',
    [{ tool_calls: [{ name: 'open_ticket', arguments: { subject: 'The kettle arrived broken' } }] }, { text: 'Done.' }],
    ['open_ticket'],
  )
  const thread = await id(`${base}/threads`, { agent_id: agents['order-desk'] })
  const give = (name: string, input: string, more: object = {}): Promise<any> =>
    call('POST', `${base}/agents/${agents[name]}/tasks?wait=30`, { input, ...more })
  await give('order-desk', 'Where is order A-1042?', { thread_id: thread })
  await give('order-desk', 'And when was it delivered?', { thread_id: thread })
  // A call of one of its tools is where a change of them is noticed.
  servers.mcp.change()
  agents['stock-desk'] = await agent(
    'stock-desk',
    [{ tool_calls: [{ name: 'warehouse/stock', arguments: { article: 'K-7' } }] }, { text: 'Twelve are left.' }],
    ['warehouse'],
  )
  await give('stock-desk', 'How many kettles are left?')
  await give('help-desk', 'A customer writes that the kettle arrived broken.')

  const schedule = await id(`${base}/schedules`, {
    agent_id: agents['translator'],
    name: 'Product texts',
    cron: '30 7 * * 1-5',
    time_zone: 'Europe/Berlin',
    input: 'Translate the product texts that are new since yesterday.',
  })
  const nightly = await id(`${base}/schedules`, {
    agent_id: agents['nightly-report'],
    name: 'Nightly report',
    cron: '0 2 * * *',
    input: 'Sum up yesterday.',
  })
  await call('POST', `${base}/schedules/${nightly}/pause`)
  for (let count = 0; count < 5; count++) await call('POST', `${base}/schedules/${schedule}/trigger`, {})

  const secret = 'a secret of the sender'
  const trigger = await call('POST', `${base}/triggers`, {
    agent_id: agents['translator'],
    name: 'New product text',
    source: 'bearer',
    secret,
    filter: [{ path: 'body.text', op: 'exists' }],
  })
  for (const body of ['{"text": "The lamp is back in stock."}', '{"ping": true}'])
    await fetch(trigger.url, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body,
    })

  for (const [name, type, body] of [
    ['returns-policy.md', 'text/markdown', '# Returns\n\nWithin 30 days.'],
    ['orders-november.csv', 'text/csv', 'order,total\nA-1042,48.50\n'],
    ['kettle.json', 'application/json', '{"sku": "K-7"}'],
  ] as const) {
    const form = new FormData()
    form.append('file', new Blob([body], { type }), name)
    const answer = await fetch(`${url}${base}/files`, { method: 'POST', headers: { 'x-api-key': key }, body: form })
    if (!answer.ok) throw new Error(`${name}: ${answer.status} ${await answer.text()}`)
  }

  await id('/api/v1/webhooks', {
    url: `${servers.receiver}/events`,
    events: ['agent.completed', 'agent.failed'],
    secret: 'a secret of the receiver',
  })
  const down = await id('/api/v1/webhooks', {
    url: `${servers.receiver}/down`,
    events: ['agent.completed'],
    secret: 'a secret of the receiver',
  })
  await give('translator', 'The kettle is sold out.')
  const { deliveries } = await until(
    `/api/v1/webhooks/${down}/deliveries`,
    ({ deliveries }) => deliveries[0]?.attempts > 0,
  )
  await call('POST', '/api/v1/auth/invitations', { email: 'kim@example.com', role: 'member' })
  await call('POST', '/api/v1/auth/oauth-clients', {
    name: 'Dashboard',
    redirect_uris: ['https://dashboard.example.com/callback'],
    scopes: ['read'],
  })
  return { tools, credentials, schedule, thread, trigger: trigger.id, webhook: down, delivery: deliveries[0].id }
}
