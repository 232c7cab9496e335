import { TasksPage } from '../../tasks/tasks-page.tsx'

export default TasksPage
