/** A version of an agent in words: they count from 0, which is the agent as it was created. */
export function versionWords(version: number): string {
  return version === 0 ? 'original version' : `version ${version}`
}
