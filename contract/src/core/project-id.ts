/** The id of a project in error format `agents` and in events: `proj_42`. */
export function projectId(project: number): string {
  return `proj_${project}`
}
