/** Facts about a foreign protocol that gives access to agents and tasks. */
interface DoorFacts {
  /** Display name. */
  title: string
  /** What an agent is to clients of the protocol, and which scopes a key needs. */
  lead: string
  /** Prefix of its paths. */
  path: `/${string}`
  /** Whether the service serves it if `CADRE_DOORS` is not set. */
  on: boolean
  /**
   * Its error formats with their descriptions. The first one is used for paths below the prefix that match no
   * operation.
   */
  error_formats: Record<string, string>
}

/** Every protocol by its name in `CADRE_DOORS`, in `config.doors` of agents, and in `cadre agents connect --as`. */
export const doors = {
  openai: {
    title: 'OpenAI',
    lead: 'The agent is a model for every client of the OpenAI API. A key needs tasks:write.',
    path: '/v1',
    on: true,
    error_formats: { openai: 'the format of the OpenAI protocol' },
  },
  mcp: {
    title: 'MCP',
    lead: 'The agent is a tool for every client of the Model Context Protocol. A key needs tasks:write and agents:read; clients that sign their user in need no key.',
    path: '/mcp',
    on: true,
    error_formats: { mcp: 'the format of the Model Context Protocol' },
  },
  a2a: {
    title: 'A2A',
    lead: 'The agent is an agent for every client of the Agent2Agent protocol. A key needs tasks:write.',
    path: '/a2a',
    on: false,
    error_formats: { a2a_http: 'the format of A2A in HTTP and JSON', a2a: 'the format of A2A in JSON-RPC' },
  },
  agui: {
    title: 'AG-UI',
    lead: 'The agent is the back end of a user interface that speaks AG-UI, such as CopilotKit. A key needs tasks:write.',
    path: '/agui',
    on: false,
    error_formats: { agui: 'the format of AG-UI' },
  },
} as const satisfies Record<string, DoorFacts>

export type DoorName = keyof typeof doors

/** The error formats of protocols. */
export type DoorErrorFormat = { [Name in DoorName]: keyof (typeof doors)[Name]['error_formats'] & string }[DoorName]

export const doorNames = Object.keys(doors) as DoorName[]

/** Descriptions of the protocols' error formats. */
export const doorErrorFormats = Object.fromEntries(
  doorNames.flatMap((name) => Object.entries(doors[name].error_formats)),
) as Record<DoorErrorFormat, string>
