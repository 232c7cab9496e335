import type { CredentialKind } from '../core/operation.ts'

/** Who does something, and from where: what every entry of the audit log says beside what was done. */
export interface Actor {
  /** The organization that it is done in; null where it concerns a person, who may be in several, as signing in does. */
  org_id: string | null
  /** Id of a user or an OAuth client; null where the caller is unknown, or the service acts. */
  actor: string | null
  credential: { kind: CredentialKind; id: string } | null
  ip: string | null
  user_agent: string | null
  /** Null where no request asked for it. */
  request_id: string | null
}

/** Everything that the audit log records, and what each action means. The noun says what `target` names. */
export const auditActions = {
  'agent.created': 'An agent was created.',
  'agent.deleted': 'An agent was deleted, with its tasks, logs and metrics.',
  'agent.launched': 'An agent was launched: created, started or restarted, as `detail.trigger` says.',
  'agent.paused': 'An agent was paused.',
  'agent.restarted': 'An agent was restarted.',
  'agent.rolled_back': 'An agent was taken back to an older version, `detail.version`.',
  'agent.started': 'An agent was started.',
  'agent.stopped': 'An agent was stopped.',
  'agent.updated': 'An agent was changed.',
  'api_key.created': 'An API key was made.',
  'api_key.revoked': 'An API key was revoked.',
  'api_key.rotated': 'An API key got a new secret.',
  'api_key.updated': "An API key's name, description or scopes were changed.",
  'approval.resolved': 'An approval was approved or rejected.',
  'tool_call.refused': 'A result or a heartbeat of a tool call came with a lease that this service never gave out.',
  'tool_call.resolved': 'The result of a call of a tool on your side was given.',
  'work.completed': 'A worker on your side completed a task.',
  'work.failed': 'A worker on your side gave a task up, with `detail.code`.',
  'work.refused': 'A request for the work of a task came with a lease that this service never gave out.',
  'budget.created': 'A budget was set.',
  'budget.deleted': 'A budget was removed.',
  'budget.updated': 'A budget was changed.',
  'credential.authorization_refused':
    'A browser of another person came back from an issuer for a credential, and was refused.',
  'credential.authorization_requested': 'A person began to connect a credential with an issuer.',
  'credential.connected': 'A person let the service in at the issuer of a credential.',
  'credential.created': "A credential for an agent's tools was stored.",
  'credential.deleted': "A credential for an agent's tools was removed.",
  'test_case.created': 'A test case of an agent was kept.',
  'test_case.deleted': 'A test case of an agent was removed.',
  'test_case.updated': 'A test case of an agent was changed.',
  'credential.updated': 'A credential was renamed, or got another value (`detail.is_value_changed`).',
  'file.created': 'A file was uploaded.',
  'file.deleted': 'A file was deleted.',
  'identity.linked': 'An account was linked with an account at an identity provider.',
  'identity.unlinked': 'The link between an account and an identity provider was removed.',
  'invitation.accepted': 'An invitation was accepted; its user became a member.',
  'invitation.created': 'A person was invited into the organization.',
  'invitation.revoked': 'An invitation was withdrawn.',
  'member.added': 'A user became a member of the organization without an invitation.',
  'member.left': 'A member left the organization.',
  'member.removed': 'A member was removed from the organization.',
  'member.updated': "A member's role was changed.",
  'oauth_client.created': 'An OAuth app was registered.',
  'oauth_client.deleted': 'An OAuth app was removed, and its access with it.',
  'oauth_client.updated': 'An OAuth app was changed, or got a new secret (`detail.is_secret_changed`).',
  'oauth_grant.created': 'A user let an OAuth app in.',
  'oauth_grant.revoked': "An OAuth app's access ended, for `detail.reason`.",
  'organization.created': 'An organization was created.',
  'organization.purged': 'An administrator had what has outlived its retention removed at once.',
  'organization.updated': 'An organization was changed.',
  'project.created': 'A project was created.',
  'project.deleted': 'A project was deleted.',
  'project.tool_previewed':
    'A server or document was asked for its tools, and no tool was registered or changed by it.',
  'project.tool_tried': 'A tool was called by hand, as `detail` says.',
  'project.updated': 'A project was renamed.',
  'schedule.created': 'A schedule was created.',
  'schedule.deleted': 'A schedule was deleted.',
  'schedule.paused': 'A schedule was paused.',
  'schedule.resumed': 'A schedule goes on.',
  'schedule.triggered': 'A task was made from a schedule out of turn.',
  'schedule.updated': 'A schedule was changed.',
  'session.ended': 'A sign-in was ended by its user from another one.',
  'task.budget_changed': "A task's own budget was changed.",
  'task.erased': 'A task was erased: its content is gone, and this entry stays.',
  'task.canceled': 'A cancellation of a task was requested.',
  'task.retried': 'A finished task was tried again, as the task `detail.task_id`.',
  'thread.deleted': 'A conversation was deleted.',
  'tool.approved': "Changed definitions of a tool's server were accepted.",
  'tool.created': 'A tool was defined.',
  'tool.deleted': 'A tool was removed.',
  'tool.updated': 'A tool was changed.',
  'trigger.created': 'A trigger was created.',
  'trigger.deleted': 'A trigger was deleted.',
  'trigger.paused': 'A trigger was paused.',
  'trigger.refused':
    'A request to a trigger did not prove itself; written once an hour, `refused` of the trigger counts all.',
  'trigger.replayed': 'A delivery of a trigger was replayed, as `detail.delivery_id`.',
  'trigger.resumed': 'A trigger goes on.',
  'trigger.rotated': 'A trigger got another address, and another secret where `detail.is_secret_changed`.',
  'trigger.tested': 'A sample was given to a trigger.',
  'trigger.updated': 'A trigger was changed, or got another secret (`detail.is_secret_changed`).',
  'user.created': 'An account was made.',
  'user.password_changed': 'A user changed their password, which ended all their other sessions and grants.',
  'user.password_reset': 'An operator set a new password, which ended all sessions and grants of the user.',
  'user.sessions_ended': 'A user ended all their other sessions and grants.',
  'user.sign_in_failed': 'A password was wrong, or an identity provider refused a sign-in.',
  'user.signed_in': 'A user signed in; its detail says how.',
  'user.signed_out': 'A user signed out.',
  'user.updated': "A user's profile was changed.",
  'webhook.created': 'A webhook was registered.',
  'webhook.deleted': 'A webhook was removed.',
  'webhook.disabled': 'A webhook was switched off because its receiver did not answer well for too long.',
  'webhook.recovered': 'What a webhook had missed was sent again.',
  'webhook.redelivered': 'A delivery was sent again.',
  'webhook.secret_rotated': 'A webhook got a new secret.',
  'webhook.tested': 'A test event was sent to a webhook.',
  'webhook.updated': 'A webhook was changed.',
} as const

export type AuditAction = keyof typeof auditActions
