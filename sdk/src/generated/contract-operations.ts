// Made by `npm run gen` from the operations of the contract.
import type * as apiKeys from '../../../contract/src/accounts/api-keys.ts'
import type * as auditLog from '../../../contract/src/accounts/audit-log.ts'
import type * as invitations from '../../../contract/src/accounts/invitations.ts'
import type * as members from '../../../contract/src/accounts/members.ts'
import type * as oauth from '../../../contract/src/accounts/oauth.ts'
import type * as organizationApiKeys from '../../../contract/src/accounts/organization-api-keys.ts'
import type * as organizations from '../../../contract/src/accounts/organizations.ts'
import type * as preferences from '../../../contract/src/accounts/preferences.ts'
import type * as sessions from '../../../contract/src/accounts/sessions.ts'
import type * as sso from '../../../contract/src/accounts/sso.ts'
import type * as users from '../../../contract/src/accounts/users.ts'
import type * as triggerDeliveries from '../../../contract/src/doors/trigger-deliveries.ts'
import type * as triggers from '../../../contract/src/doors/triggers.ts'
import type * as projectEvents from '../../../contract/src/events/project-events.ts'
import type * as modelProviders from '../../../contract/src/models/model-providers.ts'
import type * as agentStatistics from '../../../contract/src/resources/agent-statistics.ts'
import type * as agentVersions from '../../../contract/src/resources/agent-versions.ts'
import type * as agents from '../../../contract/src/resources/agents.ts'
import type * as budgets from '../../../contract/src/resources/budgets.ts'
import type * as credentials from '../../../contract/src/resources/credentials.ts'
import type * as deliveries from '../../../contract/src/resources/deliveries.ts'
import type * as files from '../../../contract/src/resources/files.ts'
import type * as logs from '../../../contract/src/resources/logs.ts'
import type * as metrics from '../../../contract/src/resources/metrics.ts'
import type * as projectStatistics from '../../../contract/src/resources/project-statistics.ts'
import type * as projects from '../../../contract/src/resources/projects.ts'
import type * as rateLimits from '../../../contract/src/resources/rate-limits.ts'
import type * as requests from '../../../contract/src/resources/requests.ts'
import type * as system from '../../../contract/src/resources/system.ts'
import type * as usage from '../../../contract/src/resources/usage.ts'
import type * as utility from '../../../contract/src/resources/utility.ts'
import type * as webhooks from '../../../contract/src/resources/webhooks.ts'
import type * as approvals from '../../../contract/src/tasks/approvals.ts'
import type * as schedules from '../../../contract/src/tasks/schedules.ts'
import type * as taskActions from '../../../contract/src/tasks/task-actions.ts'
import type * as tasks from '../../../contract/src/tasks/tasks.ts'
import type * as testCases from '../../../contract/src/tasks/test-cases.ts'
import type * as threads from '../../../contract/src/tasks/threads.ts'
import type * as work from '../../../contract/src/tasks/work.ts'
import type * as toolCalls from '../../../contract/src/tools/tool-calls.ts'
import type * as toolStatistics from '../../../contract/src/tools/tool-statistics.ts'
import type * as toolTrials from '../../../contract/src/tools/tool-trials.ts'
import type * as tools from '../../../contract/src/tools/tools.ts'

/** What the modules with operations export. */
export type Modules = [
  typeof apiKeys,
  typeof auditLog,
  typeof invitations,
  typeof members,
  typeof oauth,
  typeof organizationApiKeys,
  typeof organizations,
  typeof preferences,
  typeof sessions,
  typeof sso,
  typeof users,
  typeof triggerDeliveries,
  typeof triggers,
  typeof projectEvents,
  typeof modelProviders,
  typeof agentStatistics,
  typeof agentVersions,
  typeof agents,
  typeof budgets,
  typeof credentials,
  typeof deliveries,
  typeof files,
  typeof logs,
  typeof metrics,
  typeof projectStatistics,
  typeof projects,
  typeof rateLimits,
  typeof requests,
  typeof system,
  typeof usage,
  typeof utility,
  typeof webhooks,
  typeof approvals,
  typeof schedules,
  typeof taskActions,
  typeof tasks,
  typeof testCases,
  typeof threads,
  typeof work,
  typeof toolCalls,
  typeof toolStatistics,
  typeof toolTrials,
  typeof tools,
]
