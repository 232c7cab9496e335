import { doors, type DoorName } from '../core/doors.ts'

/** Configuration or code with which a client connects to an agent. */
export interface Connection {
  /** Name of the client, or purpose of the text. */
  client: string
  language: 'sh' | 'json' | 'js' | 'toml'
  text: string
}

/** An agent and the address of its service. */
export interface ConnectedAgent {
  /** Without a trailing slash. */
  base_url: string
  agent_id: string
  /** Name of the agent, and of its project. */
  agent: string
  project: string
}

/** Whether the configuration of an agent publishes it to a protocol. The service must also serve the protocol. */
export function isPublishedTo(config: Record<string, unknown>, protocol: DoorName): boolean {
  const doors = config['doors']
  const of = typeof doors === 'object' && doors !== null ? (doors as Record<string, unknown>)[protocol] : undefined
  if (protocol === 'openai') return of !== false
  return typeof of === 'object' && of !== null && (of as Record<string, unknown>)['published'] === true
}

const connected: Record<DoorName, (agent: ConnectedAgent) => { url: string; connections: Connection[] }> = {
  openai,
  mcp,
  a2a,
  agui,
}

/** The URL of an agent in a protocol, and texts for its clients, which read the key from `CADRE_API_KEY`. */
export function connectionsOf(protocol: DoorName, agent: ConnectedAgent): { url: string; connections: Connection[] } {
  return connected[protocol](agent)
}

/** The setting that makes the service serve a protocol; undefined if it is served by default. */
export function doorSetting(protocol: DoorName): string | undefined {
  if (doors[protocol].on) return undefined
  const others = Object.entries(doors).flatMap(([name, { on }]) => (on ? [name] : []))
  return `CADRE_DOORS=${[...others, protocol].join()}`
}

/** Change of an agent's configuration that publishes it to a protocol. */
export function publishing(protocol: DoorName): { doors: Record<string, unknown> } {
  return { doors: { [protocol]: protocol === 'openai' ? true : { published: true } } }
}

function openai({ base_url, agent, project }: ConnectedAgent) {
  const url = `${base_url}/v1`
  const model = `${project}/${agent}`
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] })
  const connections: Connection[] = [
    {
      client: 'OpenAI SDK',
      language: 'js',
      text: `import OpenAI from 'openai'

const client = new OpenAI({ baseURL: ${quoted(url)}, apiKey: process.env.CADRE_API_KEY })
const response = await client.responses.create({ model: ${quoted(model)}, input: 'Hello' })
console.log(response.output_text)`,
    },
    {
      client: 'curl',
      language: 'sh',
      text: `curl -s ${inShell(`${url}/chat/completions`)} -H "Authorization: Bearer $CADRE_API_KEY" \\
  -H 'Content-Type: application/json' -d ${inShell(body)}`,
    },
    {
      client: 'Other clients',
      language: 'sh',
      text: `OPENAI_BASE_URL=${inShell(url)}\nOPENAI_API_KEY="$CADRE_API_KEY"\nOPENAI_MODEL=${inShell(model)}`,
    },
    {
      client: 'Codex',
      language: 'toml',
      text: `model = ${JSON.stringify(model)}
model_provider = "cadre"

[model_providers.cadre]
name = "Cadre"
base_url = ${JSON.stringify(url)}
env_key = "CADRE_API_KEY"
wire_api = "responses"`,
    },
  ]
  return { url, connections }
}

function mcp({ base_url, agent_id }: ConnectedAgent) {
  const url = `${base_url}/mcp/agents/${agent_id}`
  const cursor = { mcpServers: { cadre: { url, headers: { Authorization: 'Bearer ${env:CADRE_API_KEY}' } } } }
  const code = {
    inputs: [{ id: 'cadre', type: 'promptString', description: 'Cadre API key', password: true }],
    servers: { cadre: { type: 'http', url, headers: { Authorization: 'Bearer ${input:cadre}' } } },
  }
  const connections: Connection[] = [
    {
      client: 'Claude Code',
      language: 'sh',
      text: `claude mcp add --transport http cadre ${inShell(url)} --header "Authorization: Bearer $CADRE_API_KEY"`,
    },
    { client: 'Cursor, .cursor/mcp.json', language: 'json', text: JSON.stringify(cursor, null, 2) },
    { client: 'VS Code, .vscode/mcp.json', language: 'json', text: JSON.stringify(code, null, 2) },
    {
      client: 'MCP Inspector',
      language: 'sh',
      text: `npx @modelcontextprotocol/inspector --cli ${inShell(url)} --transport http --method tools/list --header "Authorization: Bearer $CADRE_API_KEY"`,
    },
  ]
  return { url, connections }
}

function a2a({ base_url, agent_id }: ConnectedAgent) {
  const agent = `${base_url}/a2a/agents/${agent_id}`
  const url = `${agent}/.well-known/agent-card.json`
  const message = { messageId: 'm-1', role: 'ROLE_USER', parts: [{ text: 'Hello' }] }
  const connections: Connection[] = [
    {
      client: 'curl',
      language: 'sh',
      text: `curl -s ${inShell(`${agent}/message:send`)} -H "Authorization: Bearer $CADRE_API_KEY" -H 'A2A-Version: 1.0' \\
  -H 'Content-Type: application/json' -d ${inShell(JSON.stringify({ message }))}`,
    },
    {
      client: 'A2A SDK',
      language: 'js',
      text: `import { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory } from '@a2a-js/sdk/client'

const fetchImpl = (url, init) => {
  const headers = new Headers(init?.headers)
  headers.set('authorization', \`Bearer \${process.env.CADRE_API_KEY}\`)
  return fetch(url, { ...init, headers })
}
const transports = [new JsonRpcTransportFactory({ fetchImpl })]
const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports }))
const client = await factory.createFromUrl(${quoted(url)}, '')

const part = { content: { $case: 'text', value: 'Hello' }, filename: '', mediaType: '' }
const message = { messageId: crypto.randomUUID(), contextId: '', taskId: '', role: 1, parts: [part] }
const task = await client.sendMessage({ tenant: '', message: { ...message, extensions: [], referenceTaskIds: [] } })
console.log(task.artifacts[0].parts[0].content.value)`,
    },
  ]
  return { url, connections }
}

function agui({ base_url, agent_id }: ConnectedAgent) {
  const url = `${base_url}/agui/agents/${agent_id}`
  const message = { id: 'm-1', role: 'user', content: 'Hello' }
  const run = { threadId: 'thread-1', runId: 'run-1', state: {}, messages: [message], tools: [], context: [] }
  const connections: Connection[] = [
    {
      client: 'AG-UI client',
      language: 'js',
      text: `import { HttpAgent } from '@ag-ui/client'

const headers = { authorization: \`Bearer \${process.env.CADRE_API_KEY}\` }
const agent = new HttpAgent({ url: ${quoted(url)}, headers })
agent.addMessage({ id: crypto.randomUUID(), role: 'user', content: 'Hello' })
const { newMessages } = await agent.runAgent({ tools: [] })
console.log(newMessages.at(-1).content)`,
    },
    {
      client: 'curl',
      language: 'sh',
      text: `curl -sN ${inShell(url)} -H "Authorization: Bearer $CADRE_API_KEY" -H 'Accept: text/event-stream' \\
  -H 'Content-Type: application/json' -d ${inShell(JSON.stringify({ ...run, forwardedProps: {} }))}`,
    },
  ]
  return { url, connections }
}

/** A JavaScript string literal. */
function quoted(text: string): string {
  return `'${text.replaceAll(/[\\']/g, '\\$&')}'`
}

/** A word of a shell command, quoted if necessary. */
function inShell(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
