import { agentVersionOperations } from './agent-versions.ts'
import { agentOperations } from './agents.ts'
import { apiKeyOperations } from './api-keys.ts'
import { approvalOperations } from './approvals.ts'
import { deliveryOperations } from './deliveries.ts'
import { budgetOperations } from './budgets.ts'
import { logOperations } from './logs.ts'
import { metricOperations } from './metrics.ts'
import { oauthOperations } from './oauth.ts'
import { credentialOperations } from './credentials.ts'
import type { Operation } from './operation.ts'
import { projectEventOperations } from './project-events.ts'
import { projectOperations } from './projects.ts'
import { scheduleOperations } from './schedules.ts'
import { sessionOperations } from './sessions.ts'
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
  ...agentOperations,
  ...agentVersionOperations,
  ...logOperations,
  ...metricOperations,
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
  ...apiKeyOperations,
  ...userOperations,
  ...sessionOperations,
  ...deliveryOperations,
  ...oauthOperations,
  ...webhookOperations,
  ...utilityOperations,
]
