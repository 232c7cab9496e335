/** The part of jq that is used; the package has no types. */
declare module 'jq-web' {
  const jq: Promise<{
    /** Throws if jq exits with a code other than 0; undefined if it prints nothing. */
    raw(json: string, expression: string, flags: readonly string[]): string | undefined
  }>
  export default jq
}
