import type { Secrets } from '../../platform/crypto/secrets.ts'
import { secretLabels } from '../../platform/crypto/secret-labels.ts'

/** Decrypts the environment variables of an agent. Throws if they were encrypted with another secret key. */
export function readEnvironment(
  secrets: Secrets,
  agent_id: string,
  environment: Buffer | null,
): Record<string, string> {
  return environment === null
    ? {}
    : (JSON.parse(secrets.decrypt(secretLabels.agent_environment, environment, agent_id)) as Record<string, string>)
}
