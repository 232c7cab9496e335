import type { Secrets } from '../../platform/crypto/secrets.ts'

/** Label of the key that encrypts environment variables; the agent's id is the associated data. */
export const environmentLabel = 'agent-environment'

/** The environment variables of an agent, in the clear. Throws where the secret key is not the one they were kept with. */
export function readEnvironment(
  secrets: Secrets,
  agent_id: string,
  environment: Buffer | null,
): Record<string, string> {
  return environment === null
    ? {}
    : (JSON.parse(secrets.decrypt(environmentLabel, environment, agent_id)) as Record<string, string>)
}
