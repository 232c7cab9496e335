import type { Secrets } from '../../platform/crypto/secrets.ts'
import { secretLabels } from '../../platform/crypto/secret-labels.ts'

/** The environment variables of an agent, in the clear. Throws where the secret key is not the one they were kept with. */
export function readEnvironment(
  secrets: Secrets,
  agent_id: string,
  environment: Buffer | null,
): Record<string, string> {
  return environment === null
    ? {}
    : (JSON.parse(secrets.decrypt(secretLabels.agent_environment, environment, agent_id)) as Record<string, string>)
}
