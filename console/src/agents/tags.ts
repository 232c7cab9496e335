/** The words by which an agent is found: `metadata.tags`, where that is a list of words. */
export function tagsOf({ metadata }: { metadata: Record<string, unknown> }): string[] {
  const { tags } = metadata
  return Array.isArray(tags) ? tags.filter((tag): tag is string => typeof tag === 'string') : []
}
