import { agentOperations } from './agents.ts'
import { apiKeyOperations } from './api-keys.ts'
import { logOperations } from './logs.ts'
import { metricOperations } from './metrics.ts'
import { oauthOperations } from './oauth.ts'
import type { Operation } from './operation.ts'
import { projectOperations } from './projects.ts'
import { sessionOperations } from './sessions.ts'
import { taskOperations } from './tasks.ts'
import { userOperations } from './users.ts'
import { utilityOperations } from './utility.ts'
import { webhookOperations } from './webhooks.ts'

/** Every operation of the API, in the order of the document. A new resource's operations are added here. */
export const operations: readonly Operation[] = [
  ...projectOperations,
  ...agentOperations,
  ...logOperations,
  ...metricOperations,
  ...taskOperations,
  ...apiKeyOperations,
  ...userOperations,
  ...sessionOperations,
  ...oauthOperations,
  ...webhookOperations,
  ...utilityOperations,
]
