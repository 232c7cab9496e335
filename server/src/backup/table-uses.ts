/** How a backup treats a table. */
export type TableUse = WholeTable | PartOfTable | TableLeftOut

interface WholeTable {
  is: 'kept'
  /** Rows are kept until they, or what they belong to, are deleted; the guide has no retention for them. */
  retention?: 'until it is deleted'
}
/** The columns in `without` get their defaults at a restore. */
interface PartOfTable {
  is: 'kept'
  without: readonly string[]
  why: string
}
interface TableLeftOut {
  is: 'left out'
  why: string
}

const stored: WholeTable = { is: 'kept' }
/** Resources that users create and delete. */
const storedUntilDeleted: WholeTable = { is: 'kept', retention: 'until it is deleted' }

/**
 * Every table, and whether a backup has it. A new table must be added here; a test checks that. A table unknown here,
 * because a later migration dropped it, is kept. The queue's tables (schema `pgboss`) are not included: jobs are
 * recreated from the tasks that name them, so that a restore does not depend on the version of the queue (see
 * `engine/queue/requeue.ts`).
 */
export const tableUses: Readonly<Record<string, TableUse>> = {
  organization: storedUntilDeleted,
  app_user: storedUntilDeleted,
  identity: storedUntilDeleted,
  member: storedUntilDeleted,
  invitation: stored,
  // Sessions and apps stay signed in after a restore.
  session: stored,
  oauth_client: storedUntilDeleted,
  oauth_consent: storedUntilDeleted,
  oauth_grant: stored,
  oauth_artifact: stored,
  api_key: stored,
  api_key_usage: stored,
  api_key_call: stored,
  refusal_hour: stored,
  // Has the id of the secret key (`key_id`).
  service_secret: storedUntilDeleted,
  credential: storedUntilDeleted,
  credential_oauth: storedUntilDeleted,
  credential_authorization: stored,
  model_provider: storedUntilDeleted,
  project: storedUntilDeleted,
  agent: storedUntilDeleted,
  agent_version: stored,
  test_case: storedUntilDeleted,
  agent_log: stored,
  agent_usage: stored,
  model_warning: stored,
  usage_hour: stored,
  // Delegations that are open continue after a restore.
  delegation: stored,
  task_rollup: stored,
  task_rollup_state: stored,
  log_rollup: stored,
  log_rollup_state: stored,
  // A restore must not reset hourly token limits and failed sign-ins.
  token_usage: stored,
  login_attempt: stored,
  // A request that is repeated after a restore must not do its work twice.
  idempotency: stored,
  door_request: stored,
  door_key: stored,
  tool: storedUntilDeleted,
  thread: stored,
  schedule: stored,
  trigger: stored,
  trigger_delivery: stored,
  // A delivery that comes again after a restore must not start a second task.
  trigger_key: stored,
  trigger_thread: stored,
  budget: stored,
  task: stored,
  task_step: stored,
  task_message: stored,
  approval: stored,
  tool_call: stored,
  // Leases end after a restore, and their tasks are offered again.
  work: stored,
  door_response: stored,
  door_conversation: stored,
  door_thread: stored,
  file: stored,
  file_piece: stored,
  task_file: stored,
  file_object_left: stored,
  // Pending work: concurrency limits with room, and agents to be purged.
  freed_gate: stored,
  removed_agent: stored,
  audit: stored,
  webhook: storedUntilDeleted,
  event: stored,
  delivery: stored,
  delivery_attempt: stored,
  task_event: {
    is: 'kept',
    without: ['xid'],
    why: 'Transaction numbers are only valid in one PostgreSQL: restored events have that of the restore.',
  },
  webhook_lane: {
    is: 'kept',
    without: ['owner'],
    why: 'Its owner is a process that does not exist after a restore.',
  },
  agent_count: {
    is: 'left out',
    why: 'The database counts again as agents are restored.',
  },
  project_count: {
    is: 'left out',
    why: 'The database counts again as projects are restored.',
  },
  task_total: {
    is: 'left out',
    why: 'Maintenance adds up restored tasks again.',
  },
  task_total_state: {
    is: 'left out',
    why: 'Progress of the totals: after a restore no task is added up.',
  },
  index_to_build: {
    is: 'left out',
    why: 'Indexes of large tables that are still to be built: a restore builds all indexes.',
  },
  schema_migration: {
    is: 'left out',
    why: 'The manifest names the migrations; a restore applies them.',
  },
  worker: {
    is: 'left out',
    why: 'Processes at the time of the backup: after a restore they count as dead, and their tasks are requeued.',
  },
  rate_window: {
    is: 'left out',
    why: 'Unlogged, so PostgreSQL loses it in a crash too: counted requests of the last two hours.',
  },
  open_stream: {
    is: 'left out',
    why: 'Unlogged: streams that were open at the time of the backup.',
  },
}

/** How a backup treats a table; an unknown one is kept. */
export function useOf(table: string): TableUse {
  return tableUses[table] ?? stored
}

/** Columns of a kept table that are not in a backup. */
export function columnsLeftOut(table: string): readonly string[] {
  const use = useOf(table)
  return 'without' in use ? use.without : []
}
