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

/** Every operation of the API, in the order of the OpenAPI document. Add the operations of new resources here. */
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

/** Description of each tag, in the order of the OpenAPI document. */
export const tagDescriptions: Record<string, string> = {
  Projects: 'Isolated workspaces that hold agents.',
  Agents: 'Agents with their configuration, life cycle, logs and metrics.',
  Tasks: 'The work that agents do: durable, observable, and safe to cancel.',
  Files: 'Input and output files of tasks.',
  Threads: 'Conversations that tasks belong to.',
  Schedules: 'Recurring tasks, by cron expression and time zone.',
  Triggers: 'Addresses that other systems post to; each delivery can start a task.',
  Approvals: 'Decisions of people on tool calls.',
  Tools: 'Tools of a project in addition to the built-in ones: HTTP requests, OpenAPI documents, MCP servers.',
  'Tool calls': 'Calls of client tools: your own processes claim them and return results.',
  'Remote work': 'Tasks of remote agents: your own workers claim them, journal their steps and end them.',
  Credentials:
    'Secrets and access tokens that the service adds to requests of tools. They can be set and renewed, but never read.',
  'Test cases': 'Stored inputs to test an agent with while it changes.',
  'Model providers': 'Providers of models, with their status.',
  'Budgets and usage': 'Spending limits, and usage: calls, tokens and cost.',
  'API keys': 'Keys for programs, with scopes and expiry.',
  Organizations: 'Groups of people. Projects, agents and keys belong to an organization.',
  Members: 'The people in an organization, and their roles.',
  Invitations: 'Links by which people join an organization.',
  Users: 'The signed-in user, and the permissions of the credential.',
  Sessions: 'Signing in and out, and the sessions that are open.',
  'Single sign-on': 'Signing in with identity providers, and linking them with an account.',
  OAuth: 'OAuth 2.0: authorization code, refresh token, device flow, and registration of apps.',
  'Audit log': 'Who did what in an organization, with which credential and from which address.',
  Webhooks: 'URLs that receive events.',
  Utility: 'State of the service, and this document.',
}
