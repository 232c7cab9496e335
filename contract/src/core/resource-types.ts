/** A type of resource: the prefix of its identifiers (decision D7), and its name in messages. */
interface ResourceType {
  prefix: string
  name: string
}

/** Resource types whose 404 has the code `resource_not_found`. Add new types here. */
export const resourceTypes = {
  api_key: { prefix: 'key', name: 'API key' },
  session: { prefix: 'sess', name: 'session' },
  identity: { prefix: 'ident', name: 'linked identity' },
  organization: { prefix: 'org', name: 'organization' },
  oauth_client: { prefix: 'client', name: 'OAuth client' },
  webhook: { prefix: 'wh', name: 'webhook' },
  delivery: { prefix: 'dlv', name: 'delivery' },
  trigger: { prefix: 'trig', name: 'trigger' },
  tool: { prefix: 'tool', name: 'tool' },
  credential: { prefix: 'cred', name: 'credential' },
  model_provider: { prefix: 'mprov', name: 'model provider' },
  test_case: { prefix: 'case', name: 'test case' },
  tool_call: { prefix: 'call', name: 'tool call' },
  step: { prefix: 'step', name: 'step' },
  file: { prefix: 'file', name: 'file' },
  budget: { prefix: 'budget', name: 'budget' },
  worker: { prefix: 'worker', name: 'worker' },
} as const satisfies Record<string, ResourceType>

export type ResourceTypeName = keyof typeof resourceTypes

/** Prefixes of their identifiers. */
export type ResourcePrefix = (typeof resourceTypes)[ResourceTypeName]['prefix']
