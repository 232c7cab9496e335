import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { compressedOnce } from '../../http/encoding/encoding.ts'
import { isKnown } from '../../http/etag.ts'
import { digestOf, publishedDocument, publishedTag, publishedYaml } from './docs.ts'
import { llmsText } from './llms-text.ts'
import { pageFolders, readWrittenPages, servedAt, singlePages, type WrittenPage } from './written-pages.ts'

/**
 * Documentation for programs: the OpenAPI document as YAML, `llms.txt` for language models, and the Markdown pages
 * that it links to. Public; a request with the current ETag gets 304.
 */
export function documentRoutes(app: FastifyInstance, public_url: () => string): void {
  let read: Promise<WrittenPage[]> | undefined
  const pages = async (): Promise<WrittenPage[]> => (read ??= readWrittenPages())
  const compressed = compressedOnce()

  app.get('/openapi.yaml', async (request, reply) => {
    const url = public_url()
    if (knows(request, reply, publishedTag(url))) return reply.code(304).send()
    // RFC 9512 has no parameter for the character set: it is always UTF-8.
    return reply.type('application/yaml').send(await compressed(request, reply, await publishedYaml(url)))
  })

  app.get('/llms.txt', async (request, reply) => {
    const url = public_url()
    return sendText(request, reply, 'text/plain', llmsText(publishedDocument(url), url, await pages()))
  })

  const sendPage = async (request: FastifyRequest, reply: FastifyReply, path: string) => {
    const page = (await pages()).find((one) => one.path === path)
    return page ? sendText(request, reply, 'text/markdown', page.text) : reply.callNotFound()
  }
  for (const path of singlePages.map(servedAt))
    app.get(`/docs/${path}`, async (request, reply) => sendPage(request, reply, path))
  for (const folder of pageFolders.map(servedAt))
    app.get<{ Params: { name: string } }>(`/docs/${folder}/:name`, async (request, reply) =>
      sendPage(request, reply, `${folder}/${request.params.name}`),
    )
}

function sendText(request: FastifyRequest, reply: FastifyReply, type: string, text: string): FastifyReply {
  if (knows(request, reply, `W/"${digestOf(text)}"`)) return reply.code(304).send()
  return reply.type(`${type}; charset=utf-8`).send(text)
}

/** Sets the ETag of the response; returns whether the client already has this text. */
function knows(request: FastifyRequest, reply: FastifyReply, etag: string): boolean {
  reply.headers({ etag, 'cache-control': 'no-cache' })
  return isKnown(request.headers['if-none-match'], etag)
}
