/** The metrics cannot be served where the configuration says. */
export class MetricsPortError extends Error {
  constructor(host: string, port: number, cause: unknown) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause)
    const problem =
      code === 'EADDRINUSE'
        ? `Port ${port} on ${host}, for metrics, is in use. Set CADRE_METRICS_PORT to another one, 0 for any that is free, or off.`
        : code === 'EADDRNOTAVAIL'
          ? `This machine does not have the address ${host}, for metrics. Set CADRE_METRICS_HOST to one that it has.`
          : `Metrics cannot be served at port ${port} on ${host} (${code}). CADRE_METRICS_PORT and CADRE_METRICS_HOST set another place.`
    super(problem, { cause })
    this.name = 'MetricsPortError'
  }
}
