import { agentStatisticsOperations } from './resources/agent-statistics.ts'
import { agentVersionOperations } from './resources/agent-versions.ts'
import { agentOperations } from './resources/agents.ts'
import { apiKeyOperations } from './accounts/api-keys.ts'
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
import { organizationOperations } from './accounts/organizations.ts'
import { projectEventOperations } from './events/project-events.ts'
import { projectStatisticsOperations } from './resources/project-statistics.ts'
import { projectOperations } from './resources/projects.ts'
import { rateLimitOperations } from './resources/rate-limits.ts'
import { scheduleOperations } from './tasks/schedules.ts'
import { sessionOperations } from './accounts/sessions.ts'
import { ssoOperations } from './accounts/sso.ts'
import { taskActionOperations } from './tasks/task-actions.ts'
import { taskOperations } from './tasks/tasks.ts'
import { threadOperations } from './tasks/threads.ts'
import { usageOperations } from './resources/usage.ts'
import { toolOperations } from './resources/tools.ts'
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
  ...budgetOperations,
  ...usageOperations,
  ...toolOperations,
  ...credentialOperations,
  ...testCaseOperations,
  ...modelProviderOperations,
  ...apiKeyOperations,
  ...organizationApiKeyOperations,
  ...organizationOperations,
  ...memberOperations,
  ...invitationOperations,
  ...userOperations,
  ...rateLimitOperations,
  ...sessionOperations,
  ...ssoOperations,
  ...oauthOperations,
  ...auditOperations,
  ...webhookOperations,
  ...deliveryOperations,
  ...utilityOperations,
]
