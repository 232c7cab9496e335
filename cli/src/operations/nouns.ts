/** First words of the commands that speak to a service; read before anything else is loaded, to choose what to load. */
export const clientNouns: readonly string[] = [
  'agents',
  'api',
  'approvals',
  'audit',
  'budgets',
  'completion',
  'credentials',
  'deliveries',
  'hello',
  'invitations',
  'keys',
  'limits',
  'login',
  'logout',
  'members',
  'model-providers',
  'oauth-clients',
  'open',
  'organization',
  'profiles',
  'projects',
  'schedules',
  'sessions',
  'sso',
  'status',
  'tasks',
  'test-cases',
  'threads',
  'tools',
  'usage',
  'user',
  'webhooks',
  'whoami',
]

/** `config` has commands on both sides: these are the client's. */
export const clientConfigVerbs: readonly string[] = ['view', 'set', 'unset']

/** Whether a command line is for a service's client, not for its operator. */
export function isForClient([first, second]: readonly string[]): boolean {
  if (first === 'config') return second !== undefined && clientConfigVerbs.includes(second)
  return first !== undefined && clientNouns.includes(first)
}
