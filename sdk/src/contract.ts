import type { Static, TSchema } from 'typebox'
import type * as agentStatistics from '../../contract/src/resources/agent-statistics.ts'
import type * as agentVersions from '../../contract/src/resources/agent-versions.ts'
import type * as agents from '../../contract/src/resources/agents.ts'
import type * as apiKeys from '../../contract/src/accounts/api-keys.ts'
import type * as approvals from '../../contract/src/tasks/approvals.ts'
import type * as audit from '../../contract/src/accounts/audit-log.ts'
import type * as budgets from '../../contract/src/resources/budgets.ts'
import type * as credentials from '../../contract/src/resources/credentials.ts'
import type * as deliveries from '../../contract/src/resources/deliveries.ts'
import type * as files from '../../contract/src/resources/files.ts'
import type * as invitations from '../../contract/src/accounts/invitations.ts'
import type * as logs from '../../contract/src/resources/logs.ts'
import type * as members from '../../contract/src/accounts/members.ts'
import type * as metrics from '../../contract/src/resources/metrics.ts'
import type * as modelProviders from '../../contract/src/models/model-providers.ts'
import type * as oauth from '../../contract/src/accounts/oauth.ts'
import type { BodyOf, QueryOf } from '../../contract/src/core/operation.ts'
import type * as organizationApiKeys from '../../contract/src/accounts/organization-api-keys.ts'
import type * as organizations from '../../contract/src/accounts/organizations.ts'
import type * as projectEvents from '../../contract/src/events/project-events.ts'
import type * as projectStatistics from '../../contract/src/resources/project-statistics.ts'
import type * as projects from '../../contract/src/resources/projects.ts'
import type * as rateLimits from '../../contract/src/resources/rate-limits.ts'
import type * as schedules from '../../contract/src/tasks/schedules.ts'
import type * as sessions from '../../contract/src/accounts/sessions.ts'
import type * as sso from '../../contract/src/accounts/sso.ts'
import type * as taskActions from '../../contract/src/tasks/task-actions.ts'
import type * as tasks from '../../contract/src/tasks/tasks.ts'
import type * as testCases from '../../contract/src/tasks/test-cases.ts'
import type * as threads from '../../contract/src/tasks/threads.ts'
import type * as tools from '../../contract/src/resources/tools.ts'
import type * as usage from '../../contract/src/resources/usage.ts'
import type * as users from '../../contract/src/accounts/users.ts'
import type * as utility from '../../contract/src/resources/utility.ts'
import type * as webhooks from '../../contract/src/resources/webhooks.ts'

export type { AgentState } from '../../contract/src/resources/agent-lifecycle.ts'
export type { EventData } from '../../contract/src/events/event-payloads.ts'
export type { OutboxEventName } from '../../contract/src/events/events.ts'
export type { Issue } from '../../contract/src/core/problems.ts'
export type { LiveEventType, TaskEventType, TaskState } from '../../contract/src/tasks/task-lifecycle.ts'

/**
 * What the SDK knows of the contract: types alone, so that nothing of it is in a program. The package has them written out
 * in the place of this file.
 */
export type Operations = Of<typeof agentStatistics> &
  Of<typeof agentVersions> &
  Of<typeof agents> &
  Of<typeof apiKeys> &
  Of<typeof approvals> &
  Of<typeof audit> &
  Of<typeof budgets> &
  Of<typeof credentials> &
  Of<typeof deliveries> &
  Of<typeof files> &
  Of<typeof invitations> &
  Of<typeof logs> &
  Of<typeof members> &
  Of<typeof metrics> &
  Of<typeof modelProviders> &
  Of<typeof oauth> &
  Of<typeof organizationApiKeys> &
  Of<typeof organizations> &
  Of<typeof projectEvents> &
  Of<typeof projectStatistics> &
  Of<typeof projects> &
  Of<typeof rateLimits> &
  Of<typeof schedules> &
  Of<typeof sessions> &
  Of<typeof sso> &
  Of<typeof taskActions> &
  Of<typeof tasks> &
  Of<typeof testCases> &
  Of<typeof threads> &
  Of<typeof tools> &
  Of<typeof usage> &
  Of<typeof users> &
  Of<typeof utility> &
  Of<typeof webhooks>

interface Declared {
  id: string
  method: string
  path: string
  responses: readonly unknown[]
}

/** The operations that a module of the contract exports, by their id. */
type Of<Module> = {
  [Name in keyof Module as Module[Name] extends Declared ? Module[Name]['id'] : never]: Module[Name] extends Declared
    ? Shape<Module[Name]>
    : never
}

interface Shape<O extends Declared> {
  method: O['method']
  path: O['path']
  /** `never` where there is none. */
  query: QueryOf<O>
  body: BodyOf<O>
  body_optional: O extends { body_optional: true } ? true : false
  /** `never` where no answer is JSON. */
  result: Result<O['responses'][number]>
}

type Result<Response> = Response extends { schema: infer Schema extends TSchema } ? Static<Schema> : never
