import type { Operations } from './contract.ts'

type Answer<Id extends keyof Operations> = Operations[Id]['result']
type Given<Id extends keyof Operations> = Operations[Id]['body']
type TaskAnswer = Answer<'getTask'>
type AnyOutput = NonNullable<TaskAnswer['output']>

/** The output of a task. `data` is the value that its `output_schema` describes, else null. */
export type TaskOutput<Data = unknown> = {
  [Name in keyof AnyOutput]: Name extends 'data' ? Data | null : AnyOutput[Name]
}

/** Results of operations, by name. */
export type Project = Answer<'getProject'>
export type ProjectStatistics = Answer<'listProjectStatistics'>['statistics'][number]
export type Agent = Answer<'listAgents'>['agents'][number]
export type AgentWithStats = Answer<'getAgent'>
export type AgentConfig = Agent['config']
export type AgentVersion = Answer<'getAgentVersion'>
export type AgentMetrics = Answer<'getAgentMetrics'>
export type AgentStatistics = Answer<'listAgentStatistics'>['statistics'][number]
export type LogEntry = Answer<'getAgentLogs'>['logs'][number]
/** `Data` is the type of its `output_schema`; the two are not checked against each other. */
export type Task<Data = unknown> = {
  [Name in keyof TaskAnswer]: Name extends 'output' ? TaskOutput<Data> | null : TaskAnswer[Name]
}
export type TaskStep = Answer<'listTaskSteps'>['steps'][number]
export type TaskEvent = Answer<'listTaskEvents'>['events'][number]
export type Thread = Answer<'getThread'>
export type ThreadMessage = Answer<'listThreadMessages'>['messages'][number]
export type Approval = Answer<'getApproval'>
export type FileObject = Answer<'getFile'>
export type Schedule = Answer<'getSchedule'>
export type Trigger = Answer<'getTrigger'>
export type MadeTrigger = Answer<'createTrigger'>
export type TriggerDelivery = Answer<'listTriggerDeliveries'>['deliveries'][number]
export type Budget = Answer<'getBudget'>
export type Usage = Answer<'getUsage'>
export type Tool = Answer<'getTool'>
export type ListedTool = Answer<'listTools'>['tools'][number]
export type ToolStatistics = Answer<'listToolStatistics'>['statistics'][number]
export type ToolPreview = Answer<'previewTool'>
export type ToolTrial = Answer<'tryTool'>
export type Credential = Answer<'getCredential'>
export type ApiKey = Answer<'getApiKey'>
export type Organization = Answer<'getOrganization'>
export type Member = Answer<'getMember'>
export type Invitation = Answer<'listInvitations'>['invitations'][number]
export type User = Answer<'getUser'>
export type Permissions = Answer<'getPermissions'>
export type Session = Answer<'getSession'>
export type OAuthClient = Answer<'getOAuthClient'>
export type AuditEntry = Answer<'listAuditEntries'>['entries'][number]
export type Webhook = Answer<'getWebhook'>
export type Delivery = Answer<'listDeliveries'>['deliveries'][number]
export type DeliveryWithAttempts = Answer<'getDelivery'>
export type ModelProvider = Answer<'listModelProviders'>['model_providers'][number]
export type ServiceStatus = Answer<'getStatus'>

/** Bodies of operations, by name. */
export type NewAgent = Given<'createAgent'>
export type AgentChange = Given<'updateAgent'>
export type NewTask = Given<'createTask'>
export type NewWebhook = Given<'createWebhook'>
export type NewTrigger = Given<'createTrigger'>
export type NewTool = Given<'createTool'>
export type NewSchedule = Given<'createSchedule'>
export type NewCredential = Given<'createCredential'>
export type NewModelProvider = Given<'createModelProvider'>

/** An operation by its id: method, path, query, body and result. */
export type { Operations }
