/** A part of the OpenAPI document as JSON. */
export type Json = Record<string, unknown>

/** An error in the OpenAPI document. */
export interface Failure {
  /** Unique within its status: the kind of problem, or the OAuth code. */
  name: string
  summary: string
  /** The response body. */
  value: Json
}

/** The OpenAPI document, with the members that our code reads. */
export interface OpenApiDocument {
  openapi: '3.0.3'
  info: Json
  servers: { url: string; description: string }[]
  tags: { name: string; description: string }[]
  security: Json[]
  paths: Record<string, Record<string, Json>>
  components: Record<string, Json>
}
