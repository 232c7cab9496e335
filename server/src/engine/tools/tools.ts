import type { Logger } from 'pino'
import { isBuiltinTool } from '#contract/tools/tools.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { Egress } from '../../platform/egress/safe-fetch.ts'
import type { Secrets } from '../../platform/crypto/secrets.ts'
import type { AccessTokens } from '../credentials/access-tokens.ts'
import { readCredentials } from '../credentials/secret-values.ts'
import { listTokenCredentials, type TokenCredential } from '../credentials/token-rows.queries.ts'
import { schemaError } from './arguments.ts'
import { builtins } from './builtin/builtins.ts'
import { kinds } from './kinds.ts'
import type { OpenedTools, Opening } from './opened.ts'
import { fillPlaceholders, namedCredentials } from './placeholders.ts'
import { growingRedaction, type Redaction } from './redaction.ts'
import type { Sandboxes } from './sandbox/sandbox.ts'
import { judgeSchemas } from './schemas/schema-judge.ts'
import { ToolError, type Tool, type ToolScope, type Toolset, type ToolSource } from './tool.ts'
import { shareToolRows, type ToolRow } from './tool-rows.ts'
import { withTokens } from './with-tokens.ts'

export interface ToolsOptions {
  sql: Sql
  secrets: Secrets
  egress: Egress
  log: Logger
  sandboxes: Sandboxes
  /** Access tokens of credentials that are renewed; without it there are none. */
  tokens?: AccessTokens | undefined
  /** The clock of `current_time`. */
  now?: () => Date
}

interface OpenOptions extends ToolsOptions {
  rowsOf: ReturnType<typeof shareToolRows>
}

/**
 * Opens the tools of agents: built-in ones and the project's, by the names in `config.tools`. The name of an OpenAPI
 * document or an MCP server stands for all of its tools, `name/tool` for one. Results are redacted and cut to
 * `toolOutputMax`.
 */
export function makeTools(options: ToolsOptions): ToolSource {
  const rowsOf = shareToolRows(options.sql)
  return { open: (scope) => openTools({ ...options, rowsOf }, scope) }
}

async function openTools(options: OpenOptions, scope: ToolScope): Promise<Toolset> {
  const { sql, rowsOf, secrets, egress, log, sandboxes, tokens, now = () => new Date() } = options
  const { project_id, environment } = scope
  const names = [...new Set(scope.names)]
  const ofProject = names.filter((name) => !isBuiltinTool(name))
  const rows = ofProject.length > 0 ? await rowsOf({ project_id, names: [...new Set(ofProject.map(rowName))] }) : []
  const named = rows.flatMap(({ definition }) => namedCredentials(definition))
  const { values: credentials, unreadable } = await readCredentials(sql, secrets, log, project_id, named)
  const renewed = tokens ? await listTokenCredentials(sql, project_id, named) : new Map<string, TokenCredential>()
  const values = [...[...credentials.values()].map(({ value }) => value), ...Object.values(environment)]
  const redaction = growingRedaction(values)
  const put = (name: string, token: string): void => {
    credentials.set(name, { value: token, allowed_hosts: renewed.get(name)?.allowed_hosts ?? null })
    redaction.add(token)
    if (!values.includes(token)) values.push(token)
  }
  const tokensOf = ({ definition }: ToolRow): Map<string, string> =>
    new Map([...renewed].flatMap(([name, { id }]) => (namedCredentials(definition).includes(name) ? [[name, id]] : [])))
  const fill: Opening['fill'] = (template, target, encode) =>
    fillPlaceholders(template, { credentials, environment }, target, encode)

  const own = builtins({ egress, sandboxes, now }, environment)
  const opened = new Map(
    rows.map((row) => {
      const { tools, ...rest } = ofKind(row, kinds[row.kind].open(row, { sql, egress, log, fill }))
      if (!tokens) return [row.name, { tools, ...rest }]
      const used = { tokens, credentials: tokensOf(row), put }
      return [row.name, { ...rest, tools: tools.map((tool) => withTokens(tool, used)) }]
    }),
  )
  const found = [...opened.values()].flatMap(({ tools }) => tools.map(({ parameters }) => parameters))
  await judgeSchemas(found, { org_id: '', project_id })
  const choice = new Choice(redaction)
  for (const name of names) {
    const tool = own.get(name)
    if (tool) choice.add(tool)
    else choice.addFrom(name, opened.get(rowName(name)))
  }
  return {
    tools: choice.tools,
    missing: choice.missing,
    unreadable,
    secrets: values,
    async close() {
      await Promise.all([...opened.values()].map(async (row) => row.close?.()))
    },
  }
}

/** The row of a name in `config.tools`: `github` for `github/create_issue`. */
function rowName(name: string): string {
  return name.split('/', 1)[0] ?? name
}

function ofKind({ kind }: ToolRow, opened: OpenedTools): OpenedTools {
  return { ...opened, tools: opened.tools.map((tool) => ({ ...tool, kind })) }
}

/** The tools for an agent's names, each once, and why others are left out. */
class Choice {
  readonly tools = new Map<string, Tool>()
  readonly missing: { name: string; reason: string }[] = []
  readonly #redaction: Redaction
  constructor(redaction: Redaction) {
    this.#redaction = redaction
  }

  add(tool: Tool): void {
    if (this.tools.has(tool.name)) return
    const fault = schemaError(tool.parameters)
    if (fault === undefined) this.tools.set(tool.name, redacted(tool, this.#redaction))
    else this.#leaveOut(tool.name, `its parameters ${fault}`)
  }

  /** `name` is the name of a row, or of one of its tools. */
  addFrom(name: string, row: OpenedTools | undefined): void {
    if (!row) return this.#leaveOut(name, 'the project has no such tool')
    const wanted = (of: string): boolean => of === name || rowName(of) === name
    const tools = row.tools.filter((tool) => wanted(tool.name))
    // A reason for the whole row applies to each of its tools.
    const missing = row.missing.filter((left) => wanted(left.name) || left.name === rowName(name))
    tools.forEach((tool) => this.add(tool))
    missing.forEach((left) => this.#leaveOut(left.name === rowName(name) ? name : left.name, left.reason))
    if (tools.length + missing.length === 0) this.#leaveOut(name, 'there is no such tool behind it')
  }

  #leaveOut(name: string, reason: string): void {
    if (!this.missing.some((left) => left.name === name)) this.missing.push({ name, reason })
  }
}

/** A tool whose results and errors are redacted. */
function redacted(tool: Tool, redaction: Redaction): Tool {
  return {
    ...tool,
    description: redaction.text(tool.description),
    async call(args, context) {
      try {
        return redaction.answer(await tool.call(args, context))
      } catch (error) {
        throw error instanceof ToolError ? redaction.error(error) : error
      }
    },
  }
}
