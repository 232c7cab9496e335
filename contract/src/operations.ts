import { agentStatisticsOperations } from './agent-statistics.ts'
import { agentVersionOperations } from './agent-versions.ts'
import { agentOperations } from './agents.ts'
import { apiKeyOperations } from './api-keys.ts'
import { approvalOperations } from './approvals.ts'
import { auditOperations } from './audit-log.ts'
import { budgetOperations } from './budgets.ts'
import { deliveryOperations } from './deliveries.ts'
import { invitationOperations } from './invitations.ts'
import { logOperations } from './logs.ts'
import { memberOperations } from './members.ts'
import { metricOperations } from './metrics.ts'
import { modelProviderOperations } from './model-providers.ts'
import { oauthOperations } from './oauth.ts'
import { credentialOperations } from './credentials.ts'
import { testCaseOperations } from './test-cases.ts'
import type { Operation } from './operation.ts'
import { organizationApiKeyOperations } from './organization-api-keys.ts'
import { organizationOperations } from './organizations.ts'
import { projectEventOperations } from './project-events.ts'
import { projectStatisticsOperations } from './project-statistics.ts'
import { projectOperations } from './projects.ts'
import { rateLimitOperations } from './rate-limits.ts'
import { scheduleOperations } from './schedules.ts'
import { sessionOperations } from './sessions.ts'
import { ssoOperations } from './sso.ts'
import { taskActionOperations } from './task-actions.ts'
import { taskOperations } from './tasks.ts'
import { threadOperations } from './threads.ts'
import { usageOperations } from './usage.ts'
import { toolOperations } from './tools.ts'
import { userOperations } from './users.ts'
import { utilityOperations } from './utility.ts'
import { webhookOperations } from './webhooks.ts'

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
