/** A piece of the OpenAPI document, as JSON. */
export type Json = Record<string, unknown>

/** One thing that can go wrong, as the document shows it. */
export interface Failure {
  /** What tells it from others of its status: the kind of problem, or OAuth's code. */
  name: string
  summary: string
  /** The body of the answer. */
  value: Json
}

/** The document, as far as those who read it need to know it. */
export interface OpenApiDocument {
  openapi: '3.0.3'
  info: Json
  servers: { url: string; description: string }[]
  tags: { name: string; description: string }[]
  security: Json[]
  paths: Record<string, Record<string, Json>>
  components: Record<string, Json>
}
