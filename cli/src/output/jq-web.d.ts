/** The part of jq that is used; the package has no types. */
declare module 'jq-web' {
  const jq: Promise<{
    /** Throws where jq ends with an exit code that is not 0; undefined where it writes nothing. */
    raw(json: string, expression: string, flags: readonly string[]): string | undefined
  }>
  export default jq
}
