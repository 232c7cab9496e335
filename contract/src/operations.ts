import { agentStatisticsOperations } from './resources/agent-statistics.ts'
import { agentVersionOperations } from './resources/agent-versions.ts'
import { agentOperations } from './resources/agents.ts'
import { apiKeyOperations } from './accounts/api-keys.ts'
import { triggerDeliveryOperations } from './doors/trigger-deliveries.ts'
import { triggerOperations } from './doors/triggers.ts'
import { approvalOperations } from './tasks/approvals.ts'
import { auditOperations } from './accounts/audit-log.ts'
import { fileOperations } from './resources/files.ts'
import { budgetOperations } from './resources/budgets.ts'
import { deliveryOperations } from './resources/deliveries.ts'
import { invitationOperations } from './accounts/invitations.ts'
import { logOperations } from './resources/logs.ts'
import { memberOperations } from './accounts/members.ts'
import { metricOperations } from './resources/metrics.ts'
import { modelProviderOperations } from './models/model-providers.ts'
import { oauthOperations } from './accounts/oauth.ts'
import { credentialOperations } from './resources/credentials.ts'
import { testCaseOperations } from './tasks/test-cases.ts'
import type { Operation } from './core/operation.ts'
import { organizationApiKeyOperations } from './accounts/organization-api-keys.ts'
import { preferenceOperations } from './accounts/preferences.ts'
import { organizationOperations } from './accounts/organizations.ts'
import { projectEventOperations } from './events/project-events.ts'
import { projectStatisticsOperations } from './resources/project-statistics.ts'
import { projectOperations } from './resources/projects.ts'
import { rateLimitOperations } from './resources/rate-limits.ts'
import { requestOperations } from './resources/requests.ts'
import { scheduleOperations } from './tasks/schedules.ts'
import { systemOperations } from './resources/system.ts'
import { sessionOperations } from './accounts/sessions.ts'
import { ssoOperations } from './accounts/sso.ts'
import { taskActionOperations } from './tasks/task-actions.ts'
import { taskOperations } from './tasks/tasks.ts'
import { threadOperations } from './tasks/threads.ts'
import { workOperations } from './tasks/work.ts'
import { usageOperations } from './resources/usage.ts'
import { toolStatisticsOperations } from './tools/tool-statistics.ts'
import { toolTrialOperations } from './tools/tool-trials.ts'
import { toolOperations } from './tools/tools.ts'
import { toolCallOperations } from './tools/tool-calls.ts'
import { userOperations } from './accounts/users.ts'
import { utilityOperations } from './resources/utility.ts'
import { webhookOperations } from './resources/webhooks.ts'

/** Every operation of the API, in the order of the document. A new resource's operations are added here. */
export const operations: readonly Operation[] = [
  ...projectOperations,
  ...projectStatisticsOperations,
  ...agentOperations,
  ...agentVersionOperations,
  ...logOperations,
  ...metricOperations,
  ...agentStatisticsOperations,
  ...taskOperations,
  ...taskActionOperations,
  ...fileOperations,
  ...threadOperations,
  ...projectEventOperations,
  ...approvalOperations,
  ...scheduleOperations,
  ...triggerOperations,
  ...triggerDeliveryOperations,
  ...budgetOperations,
  ...usageOperations,
  ...toolStatisticsOperations,
  ...toolTrialOperations,
  ...toolOperations,
  ...toolCallOperations,
  ...workOperations,
  ...credentialOperations,
  ...testCaseOperations,
  ...modelProviderOperations,
  ...apiKeyOperations,
  ...organizationApiKeyOperations,
  ...organizationOperations,
  ...memberOperations,
  ...invitationOperations,
  ...userOperations,
  ...preferenceOperations,
  ...rateLimitOperations,
  ...sessionOperations,
  ...ssoOperations,
  ...oauthOperations,
  ...auditOperations,
  ...webhookOperations,
  ...deliveryOperations,
  ...utilityOperations,
  ...systemOperations,
  ...requestOperations,
]

/** What each group of operations is about; the order is the document's. */
export const tagDescriptions: Record<string, string> = {
  Projects: 'Isolated workspaces that hold agents.',
  Agents: 'Agents, their configuration, their life cycle, their logs and metrics.',
  Tasks: 'The work that agents do: durable, observable, and safe to cancel.',
  Files: 'What goes into tasks, and what comes out of them.',
  Threads: 'Conversations that tasks belong to.',
  Schedules: 'Tasks that come again and again, by cron and time zone.',
  Triggers: 'Addresses to which other systems post, and agents that get tasks from it.',
  Approvals: 'Questions to people about calls of tools, and their answers.',
  Tools: 'What agents of a project may call beside the built-in tools: HTTP requests, OpenAPI documents, MCP servers.',
  'Tool calls': 'Calls of tools on your side: your own processes claim them and give their results.',
  'Remote work':
    'Tasks of agents whose code is on your side: your own workers claim them, journal their steps and end them.',
  Credentials:
    'Secrets and access tokens that are put into the requests of tools on their way out. They are written or renewed, and never read.',
  'Test cases': 'Inputs that are kept to try an agent with, again and again, while it changes.',
  'Model providers': 'Where models come from, and whether it answers.',
  'Budgets and usage': 'Limits of what may be spent, and what was: calls, tokens and cost.',
  'API keys': 'Keys for programs, with scopes and expiry.',
  Organizations: 'Who works together: projects, agents and keys belong to an organization.',
  Members: 'The people in an organization, and their roles.',
  Invitations: 'Links by which people join an organization.',
  Users: 'The signed-in user, and what the credential at hand may do.',
  Sessions: 'Signing in and out, and the sessions that are open.',
  'Single sign-on': 'Signing in with identity providers, and connecting them with an account.',
  OAuth: 'Signing in with OAuth 2.0, by authorization code and refresh token.',
  'Audit log': 'Who did what in an organization, with which credential and from where.',
  Webhooks: 'Addresses that receive events.',
  Utility: 'The state of the service, and this document.',
}
