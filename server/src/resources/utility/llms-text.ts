import type { OpenApiDocument } from '#contract/openapi/openapi-types.ts'
import type { WrittenPage } from './written-pages.ts'

/**
 * Introduction for language models in the format of llmstxt.org: what the service is, and where its documentation is.
 */
export function llmsText(
  { info, tags }: OpenApiDocument,
  public_url: string,
  pages: readonly Pick<WrittenPage, 'path' | 'title'>[],
): string {
  const [summary = '', ...rules] = String(info['description']).split('\n\n')
  const linksTo = (isListed: (path: string) => boolean): string =>
    pages
      .filter(({ path }) => isListed(path))
      .map(({ path, title }) => `- [${title}](${public_url}/docs/${path})`)
      .join('\n')
  const sections = {
    API: [
      `- [OpenAPI document](${public_url}/openapi.yaml): every operation, with schemas, limits, errors and examples`,
      `- [OpenAPI document as JSON](${public_url}/api/v1/docs): the same`,
      `- [API reference](${public_url}/docs): the same as a page, which needs JavaScript`,
    ].join('\n'),
    Overview: linksTo((path) => !path.includes('/')),
    Guides: linksTo((path) => path.startsWith('guides/')),
    Reference: linksTo((path) => path.startsWith('reference/')),
  }
  return [
    `# ${String(info['title'])}`,
    `> ${summary}`,
    ...rules,
    'The API has operations for:',
    tags.map(({ name, description }) => `- ${name}: ${description}`).join('\n'),
    ...Object.entries(sections).flatMap(([title, links]) => (links === '' ? [] : [`## ${title}`, links])),
  ]
    .join('\n\n')
    .concat('\n')
}
