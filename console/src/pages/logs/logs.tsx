import { LogsPage } from '../../tasks/logs-page.tsx'

export default LogsPage
