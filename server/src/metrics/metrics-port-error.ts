/** The metrics cannot be served at the configured address. */
export class MetricsPortError extends Error {
  constructor(host: string, port: number, cause: unknown) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause)
    const problem =
      code === 'EADDRINUSE'
        ? `The metrics port ${port} on ${host} is in use. Set CADRE_METRICS_PORT to another port, to 0 for any free port, or to off.`
        : code === 'EADDRNOTAVAIL'
          ? `The metrics address ${host} does not belong to this machine. Set CADRE_METRICS_HOST to one of its addresses.`
          : `Metrics cannot be served at port ${port} on ${host} (${code}). Set CADRE_METRICS_PORT and CADRE_METRICS_HOST to another address.`
    super(problem, { cause })
    this.name = 'MetricsPortError'
  }
}
